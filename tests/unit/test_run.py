"""The runner of the tiers ends when it is told to, and its tests with it; it says what took long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests import matrix, results, run
from tests.devcluster.waiting import until


def test_what_one_end_leaves_out_knows_no_hub() -> None:
    packages = [f"hub_ext.{name}" for name in ("catalog", "gpu", "render")] + ["services.doctor"]
    code = f"""
import importlib, pkgutil, sys
for name in {packages}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
assert not {{"jupyterhub", "kubespawner"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert all((Path(__file__).parent / folder).is_dir() for folder in run.WITHOUT_HUB)


def test_ends_when_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.needs, "prepare", lambda *_: None)
    monkeypatch.setattr(run, "execute", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run.main(["unit"]) == run.INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_it_runs_ends_with_it() -> None:
    commands = run.Commands()
    ended: list[int] = []
    threads = [
        threading.Thread(target=lambda: ended.append(commands.run(["sleep", "600"], os.environ)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    until(lambda: None if len(commands._running) == 2 else "not both run", what="both to run")
    commands.end()
    for thread in threads:
        thread.join()
    assert ended == [-signal.SIGTERM] * 2
    with pytest.raises(KeyboardInterrupt):
        commands.run(["true"], os.environ)


def test_runs_with_nodes_are_beside_the_others_and_each_is_shown_whole(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def execute(one: run.Run, extra: Any, commands: run.Commands, output: Any = None) -> results.Result:
        code = f"print('{one.tier} one', flush=True); print('{one.tier} two')"
        assert commands.run([sys.executable, "-c", code], os.environ, output) == 0
        return results.Result(title=one.title, seconds=0)

    monkeypatch.setattr(run, "execute", execute)
    runs = [run.Run(tier=tier) for tier in ("unit", "hub", "nodes", "browser")]
    assert [[one.tier for one in lane] for lane in run.lanes_of(runs)] == [
        ["unit", "hub"],
        ["nodes", "browser"],
    ]
    assert len(run.execute_all(runs, [])) == 4
    said = capfd.readouterr().out
    assert all(f"{one.tier} one\n{one.tier} two\n" in said for one in runs)
    run.execute_all(runs[:1], [])
    assert capfd.readouterr().out == "unit one\nunit two\n", "one lane is shown as it runs"


def test_an_interrupt_in_one_lane_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(one: run.Run, extra: Any, commands: run.Commands, output: Any = None) -> results.Result:
        if one.tier == "unit":
            raise KeyboardInterrupt
        commands.run(["sleep", "600"], os.environ, output)
        return results.Result(title=one.title, seconds=0)

    monkeypatch.setattr(run, "execute", execute)
    with pytest.raises(KeyboardInterrupt):
        run.execute_all([run.Run(tier="unit"), run.Run(tier="nodes")], [])


REPORT = """<testsuites><testsuite tests="3" failures="1" skipped="1">
<testcase classname="tests.unit.test_a" name="test_fast" time="0.1"/>
<testcase classname="tests.unit.test_a" name="test_slow[x]" time="12.5"/>
<testcase classname="tests.unit.test_b" name="test_skipped" time="0.0"><skipped/></testcase>
</testsuite></testsuites>"""


def test_names_the_slowest_tests_of_each_run(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert results.read_report(report) == (3, 1, 1)
    slowest = results.slowest_tests(report, count=2)
    assert slowest == ((12.5, "tests.unit.test_a::test_slow[x]"), (0.1, "tests.unit.test_a::test_fast"))
    runs = [
        results.Result(title="unit", seconds=13, tests=3, slowest=slowest),
        results.Result(title="nodes", seconds=0, problem="no test ran"),
    ]
    lines = results.summarize(runs, seconds=14).splitlines()
    assert "Slowest of unit:" in lines
    assert "    12.5 s  tests.unit.test_a::test_slow[x]" in lines
    assert "Slowest of nodes:" not in lines
    assert lines[-1] == "3 passed, 1 failed, 0 skipped"


def test_prepares_for_both_ends_without_running(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(run.needs, "prepare", lambda *wanted: asked.append(wanted))
    monkeypatch.setattr(run, "execute", lambda *_: pytest.fail("it runs tests"))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert run.main(["--only-prepare", "unit", "control"]) == 0
    ((tiers, ends),) = asked
    assert list(tiers) == ["unit", "control"]
    assert ends == set(matrix.ENDS)
