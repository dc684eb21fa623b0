"""The runner of the tiers ends when it is told to, and its tests with it; it says what took long."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import matrix, run


def test_ends_when_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.needs, "prepare", lambda *_: None)
    monkeypatch.setattr(run, "execute", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run.main(["unit"]) == run.INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_it_runs_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[Any]] = []

    class InterruptedWait(subprocess.Popen[Any]):
        def wait(self, timeout: float | None = None) -> int:
            if self not in started:
                started.append(self)
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", InterruptedWait)
    with pytest.raises(KeyboardInterrupt):
        run.run_along(["sleep", "600"], os.environ)
    assert [process.returncode for process in started] == [-signal.SIGTERM]


REPORT = """<testsuites><testsuite tests="3" failures="1" skipped="1">
<testcase classname="tests.unit.test_a" name="test_fast" time="0.1"/>
<testcase classname="tests.unit.test_a" name="test_slow[x]" time="12.5"/>
<testcase classname="tests.unit.test_b" name="test_skipped" time="0.0"><skipped/></testcase>
</testsuite></testsuites>"""


def test_names_the_slowest_tests_of_each_run(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert run.read_report(report) == (3, 1, 1)
    slowest = run.slowest_tests(report, count=2)
    assert slowest == ((12.5, "tests.unit.test_a::test_slow[x]"), (0.1, "tests.unit.test_a::test_fast"))
    results = [
        run.Result(title="unit", seconds=13, tests=3, slowest=slowest),
        run.Result(title="nodes", seconds=0, problem="no test ran"),
    ]
    lines = run.summarize(results).splitlines()
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
