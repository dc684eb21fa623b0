"""The runner of the tiers ends when it is told to, and its tests with it."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest

from tests import run


def test_ends_when_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
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
