"""Programs and commands: how they are started, told about and ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.devcluster.commands import execute
from tests.devcluster.errors import CommandFailedError, NotReadyError, ProcessDiedError, StateError
from tests.devcluster.processes import Processes
from tests.devcluster.sweep import marked
from tests.devcluster.waiting import PATIENCE_SECONDS, until


class TestProcesses:
    def test_a_program_is_marked_logged_and_ended(self, tmp_path: Path) -> None:
        processes = Processes(tmp_path)
        process = processes.start("sleeper", ["sh", "-c", "echo hello; exec sleep 60"], log=tmp_path / "log")
        until(lambda: None if (tmp_path / "log").read_text() else "no log", what="the log")
        assert process.pid in marked(tmp_path)
        with pytest.raises(StateError, match="sleeper runs already"):
            processes.start("sleeper", ["true"], log=tmp_path / "log")
        processes.stop_all()
        processes.check()
        assert marked(tmp_path) == []
        with pytest.raises(StateError, match="is being stopped"):
            processes.start("late", ["true"], log=tmp_path / "log")

    def test_one_that_dies_says_its_code_and_last_lines(self, tmp_path: Path) -> None:
        processes = Processes(tmp_path)
        process = processes.start("weak", ["sh", "-c", "echo no config; exit 3"], log=tmp_path / "weak.log")
        process.wait(PATIENCE_SECONDS)
        with pytest.raises(ProcessDiedError) as died:
            processes.check()
        assert (died.value.name, died.value.code) == ("weak", 3)
        assert "weak exited with 3" in str(died.value)
        assert "no config" in str(died.value)
        assert str(tmp_path / "weak.log") in str(died.value)
        processes.stop_all()

    def test_one_that_is_missing_says_so_in_its_log(self, tmp_path: Path) -> None:
        processes = Processes(tmp_path)
        processes.start("none", ["/no/such/program"], log=tmp_path / "log").wait(PATIENCE_SECONDS)
        with pytest.raises(ProcessDiedError, match="/no/such/program"):
            processes.check()
        processes.stop_all()

    def test_one_that_ignores_the_polite_signal_is_killed(self, tmp_path: Path) -> None:
        processes = Processes(tmp_path)
        script = "trap '' TERM; echo ready; while :; do sleep 1; done"
        process = processes.start("stubborn", ["sh", "-c", script], log=tmp_path / "log")
        until(lambda: None if (tmp_path / "log").read_text() else "no log", what="the log")
        assert process.stop(timeout=0.2) == -9
        processes.check()
        process.restart()
        assert process.poll() is None
        processes.stop_all(timeout=0.2)

    def test_nothing_of_the_developers_environment_gets_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
        processes = Processes(tmp_path, path=[Path("/some/bin")])
        process = processes.start("env", ["/usr/bin/env"], log=tmp_path / "log", env={"ADDED": "yes"})
        process.wait(PATIENCE_SECONDS)
        names = {line.split("=")[0] for line in (tmp_path / "log").read_text().splitlines()}
        assert names == {"ADDED", "HOME", "LANG", "PATH", "GPU_WORKSPACES_DEVCLUSTER"}
        processes.get("env").stop()
        processes.stop_all()


class TestWaiting:
    def test_a_wait_says_what_was_seen_last(self) -> None:
        with pytest.raises(NotReadyError, match="the moon: not after 0 s\n  last seen: a half"):
            until(lambda: "a half", what="the moon", timeout=0)

    def test_a_wait_is_cut_short_by_its_check(self) -> None:
        def check() -> None:
            raise StateError("x", "died", "")

        with pytest.raises(StateError):
            until(lambda: "nothing", what="it", timeout=1000, check=check)


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["sh", "-c", "echo out; echo err >&2; exit 4"], 4, "err\nout"),
        (["/no/such/program"], 127, "No such file"),
        (["sleep", "60"], 124, "did not end within 0 s"),
    ],
)
def test_a_failing_command_is_told_with_what_it_said(argv: list[str], code: int, says: str) -> None:
    with pytest.raises(CommandFailedError) as failed:
        execute(argv, env=os.environ, timeout=0.2 if code == 124 else PATIENCE_SECONDS)
    assert failed.value.code == code
    assert says in str(failed.value)
