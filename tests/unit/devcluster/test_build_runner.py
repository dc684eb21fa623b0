from __future__ import annotations

import dataclasses
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.devcluster import cache
from tests.devcluster.build import runner
from tests.devcluster.build.errors import BuildError, DiskSpaceError, StepError
from tests.devcluster.build.plan import Pool, Shell, Step
from tests.devcluster.build.progress import Change, State, silent
from tests.devcluster.build.runner import BUILD_LOCK, build, log_path


def step(name: str, script: str, *needs: str, lane: str = "", pool: Pool = Pool.COMPILE) -> Step:
    """A step that runs a shell script; `$1` is where to write."""

    def make(target: Path, run: Shell) -> None:
        run("sh", "-c", script, "sh", target)

    target = cache.entry("bin", "key", name)
    return Step(name=name, target=target, make=make, needs=needs, lane=lane, pool=pool)


def table(*steps: Step) -> dict[str, Step]:
    return {step.name: step for step in steps}


def test_steps_are_carried_out_after_what_they_need(cache_folder: Path) -> None:
    steps = table(
        step("source", "echo text > $1", pool=Pool.DOWNLOAD),
        step("program", f"cp {cache_folder}/bin/key/source $1", "source"),
    )
    build(["program"], steps, silent)
    assert steps["program"].target.read_text() == "text\n"


def test_a_second_call_runs_nothing(tmp_path: Path) -> None:
    steps = table(step("program", f"echo ran >> {tmp_path}/runs; echo x > $1"))
    reports: list[State] = []
    build(["program"], steps, silent)
    build(["program"], steps, reports.append)
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert reports == []


def test_the_report_counts_up_and_ends_with_nothing_left() -> None:
    steps = table(step("a", "echo > $1"), step("b", "echo > $1", "a"))
    reports: list[State] = []
    build(["b"], steps, reports.append)
    told = [(r.change, r.step, r.done, r.total) for r in reports if r.change is not Change.TICK]
    assert told == [
        (Change.PLANNED, "", 0, 2),
        (Change.STARTED, "a", 0, 2),
        (Change.FINISHED, "a", 1, 2),
        (Change.STARTED, "b", 1, 2),
        (Change.FINISHED, "b", 2, 2),
    ]
    assert reports[0].waiting == ("a", "b")
    assert reports[-1].seconds_left == 0


def test_a_failure_says_which_step_what_it_said_last_and_where_the_log_is() -> None:
    script = "for n in $(seq 40); do echo line $n; done; echo 'cannot find -lm' >&2; exit 3"
    with pytest.raises(StepError) as raised:
        build(["image:bad"], table(step("image:bad", script)), silent)
    error = raised.value
    assert (error.step, error.status, error.log) == ("image:bad", 3, log_path("image:bad"))
    assert error.tail.splitlines()[-2:] == ["line 40", "cannot find -lm"]
    text = str(error)
    assert text.startswith("building image:bad failed: `sh -c ")
    assert "exit status 3" in text
    assert str(error.log) in text
    assert "line 1\n" not in text
    assert "line 1\n" in error.log.read_text()


def test_a_failure_leaves_no_half_file(cache_folder: Path) -> None:
    with pytest.raises(StepError):
        build(["bad"], table(step("bad", "echo half > $1; exit 1")), silent)
    assert list((cache_folder / "bin").rglob("*")) == [cache_folder / "bin" / "key"]


def test_a_failure_ends_the_others_and_starts_no_more(tmp_path: Path) -> None:
    waits = f"echo $$ > {tmp_path}/pid; exec tail -f /dev/null"
    fails = f"while [ ! -s {tmp_path}/pid ]; do :; done; exit 1"
    steps = table(
        step("endless", waits), step("bad", fails), step("after", f"touch {tmp_path}/after $1", "bad")
    )
    with pytest.raises(StepError, match="building bad failed"):
        build(["endless", "after"], steps, silent)
    assert not (tmp_path / "after").exists()
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_an_interrupt_ends_what_runs(tmp_path: Path) -> None:
    def interrupt(state: State) -> None:
        if state.change is Change.TICK and (tmp_path / "pid").exists():
            raise KeyboardInterrupt

    steps = table(
        step("endless", f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec tail -f /dev/null")
    )
    with pytest.raises(KeyboardInterrupt):
        build(["endless"], steps, interrupt)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
    assert not steps["endless"].target.exists()


def test_output_may_go_to_a_file_instead_of_the_log() -> None:
    def make(target: Path, run: Shell) -> None:
        run("sh", "-c", 'echo "$WORD"; echo said >&2', env={"WORD": "content"}, stdout=target)

    made = Step(name="text", target=cache.entry("manifests", "key", "text"), make=make)
    build(["text"], table(made), silent)
    assert made.target.read_text() == "content\n"
    assert log_path("text").read_text().splitlines()[-1] == "said"


def test_a_program_that_does_not_exist_is_a_failure_of_its_step() -> None:
    def make(_: Path, run: Shell) -> None:
        run("/no/such/compiler", "-o", "x")

    made = Step(name="thing", target=cache.entry("bin", "key", "thing"), make=make)
    with pytest.raises(StepError, match=r"(?s)building thing failed: `compiler -o x` .*No such file"):
        build(["thing"], table(made), silent)


def in_threads(*works: Callable[[], None]) -> None:
    """Run works side by side; raises what one of them raised."""
    raised: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_two_builders_of_the_same_make_it_once_and_the_second_says_that_it_waits(tmp_path: Path) -> None:
    """Threads stand for processes here: the locks are per open file."""
    go_on = tmp_path / "go-on"
    script = f"echo ran >> {tmp_path}/runs; until [ -e {go_on} ]; do :; done; echo x > $1"
    steps = table(step("program", script))
    waited: list[str] = []

    def second(state: State) -> None:
        if state.change is Change.WAITING:
            waited.append(state.step)
            go_on.touch()

    def late() -> None:
        wait_until((tmp_path / "runs").exists)
        build(["program"], steps, second)

    in_threads(lambda: build(["program"], steps, silent), late)
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert waited == ["program"]


def wait_until(condition: Callable[[], bool], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"


def test_nobody_may_drop_the_build_caches_while_something_is_built() -> None:
    free: list[bool] = []

    def look(state: State) -> None:
        if state.change is Change.STARTED:
            with cache.lock_if_free(BUILD_LOCK) as alone:
                free.append(alone)

    build(["program"], table(step("program", "echo > $1")), look)
    with cache.lock_if_free(BUILD_LOCK) as alone:
        free.append(alone)
    assert free == [False, True]


class Disk(NamedTuple):
    free: int


def test_too_small_a_disk_is_said_before_anything_is_built(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = table(dataclasses.replace(step("program", "echo > $1"), seconds=1000))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free=5_000_000_000))
    with pytest.raises(DiskSpaceError) as raised:
        build(["program"], steps, silent)
    text = str(raised.value)
    assert f"takes about 10 GB in {cache_folder} while it is built" in text
    assert "5.0 GB are free" in text
    assert "GPU_WORKSPACES_CACHE" in text
    assert not steps["program"].target.exists()


def test_what_an_interrupted_build_has_left_is_not_needed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = table(dataclasses.replace(step("program", "echo > $1"), seconds=1000))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free=5_000_000_000))
    monkeypatch.setattr(cache, "size_bytes", lambda path: 5_500_000_000 if path == cache.scratch() else 0)
    build(["program"], steps, silent)
    assert steps["program"].target.exists()


def test_much_is_built_in_batches_and_the_compiled_packages_dropped_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packages = cache.compiled() / "package"
    script = f"test ! -e {packages} && mkdir -p {packages} && echo > $1"
    steps = table(step("a", script), step("b", script), step("c", script))
    monkeypatch.setattr(runner, "batches", lambda missing: [[step] for step in missing])
    reports: list[State] = []
    build(["a", "b", "c"], steps, reports.append)
    assert all(step.target.exists() for step in steps.values())
    told = [(r.change, r.total) for r in reports if r.change is not Change.TICK]
    assert told == [(Change.PLANNED, 3), *[(Change.STARTED, 3), (Change.FINISHED, 3)] * 3]
    assert reports[0].waiting == ("a", "b", "c")


def test_compiled_packages_are_kept_while_another_process_builds() -> None:
    cache.compiled().mkdir(parents=True)
    with cache.locked(BUILD_LOCK, shared=True):
        runner.drop_compiled()
        assert cache.compiled().exists()
    runner.drop_compiled()
    assert not cache.compiled().exists()


def test_what_a_step_raises_comes_out_as_it_is() -> None:
    class OwnError(BuildError):
        pass

    def make(_: Path, __: Shell) -> None:
        raise OwnError("no compiler")

    made = Step(name="thing", target=cache.entry("bin", "key", "thing"), make=make)
    with pytest.raises(OwnError, match="no compiler"):
        build(["thing"], table(made), silent)
