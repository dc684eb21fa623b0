"""Places in the pod, and what all parts of the runner share."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

WORK = Path(os.environ.get("HANDOFF_WORK", "/workspace"))
FILES = WORK / "files"
CHECKPOINTS = WORK / "checkpoints"
LOG = WORK / "run.log"
NEWS = WORK / "progress.json"
END = WORK / "end.json"
NOTEBOOK = WORK / "executed.ipynb"
TOLD_NOTEBOOK = WORK / "notebook.json"
"""What papermill is told."""
NOTICE = WORK / "preempted"
"""Appears when the run has to end: programs that cannot take a signal look for it."""
TERMINATION = Path(os.environ.get("HANDOFF_TERMINATION", "/dev/termination-log"))

GIVE_UP = 42
"""Exit status for what another try would not change; the Job fails at once."""
EVERY = 10.0
"""Seconds between two rounds of sending."""
PATIENCE = 300.0
"""Seconds that the service may be away at the start and at the end."""


DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errors of our own disk, which no other try would heal."""


class RunError(Exception):
    """The run cannot go on; `reason` is one of `status.RunReason`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def say(text: str) -> None:
    """Write a line of our own into the log, whatever names of files are in it and in any locale."""
    line = f"[handoff] {text}\n".encode("utf-8", "backslashreplace")
    sys.stdout.flush()
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def leave_word(reason: str, message: str, status: int) -> None:
    """Leave the reason where the kubelet picks it up; without that file the reason is only in the log."""
    word = json.dumps({"reason": reason, "message": message[-1500:], "exit": status})
    for file in (TERMINATION, END):
        try:
            file.write_text(word)
        except OSError as error:
            say(f"could not leave a word: {error}")


def read_end() -> tuple[str, str, int] | None:
    """Read how this pod ended before, where the kubelet starts its container again; None if it may go on.

    JobSet gives pods `restartPolicy: OnFailure` where a runtime says none. A program that is begun again so
    goes on from its checkpoint while its Job, which does not retry, already fails, and is ended midway.
    """
    try:
        word = json.loads(END.read_text())
        end = str(word["reason"]), str(word["message"]), int(word["exit"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if end[0] == "ended-by-cluster" else end
