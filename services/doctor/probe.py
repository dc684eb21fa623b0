"""Runs a probe as a process of its own, and says how it ended.

Shell: starts processes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .facts import End

KILL_SECONDS: Final = 1
"""A process that waits inside the driver cannot be killed, and is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a probe said."""

    end: End
    said: Any = None
    """The last line of JSON that it wrote; a probe that did not end well may have got so far."""
    error: str = ""
    """How it ended, in words, if not well."""


def ask(command: list[str], environment: Mapping[str, str], seconds: float) -> Answer:
    """Run a probe for at most so long; whatever it does, there is an answer."""
    # Files, not pipes: a pipe ends when all that have it do, and some never do.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(  # noqa: S603 - an interpreter and files of this package
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=complaints, env=dict(environment)
            )
        except OSError as error:
            return Answer(end=End.NOT_STARTED, error=f"{command[0]}: {error.strerror}")
        status = _wait(process, seconds)
        out.seek(0)
        complaints.seek(0)
        written = _documents(out.read())
        said = written[-1] if written else None
        if status is None:
            return Answer(end=End.HUNG, said=said, error=f"no answer within {seconds:g} seconds")
        if status != 0:
            return Answer(end=End.CRASHED, said=said, error=_how(status, complaints.read()))
        if not written:
            return Answer(end=End.CRASHED, error="it ended without an answer")
        return Answer(end=End.ANSWERED, said=said)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Wait for a process; kills it and gives None if it takes too long."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    try:
        process.wait(KILL_SECONDS)
    except subprocess.TimeoutExpired:
        process.returncode = -signal.SIGKILL  # or Python warns of it, and tries to collect it for ever
    return None


def _documents(written: bytes) -> list[Any]:
    """Read the lines that are JSON; frameworks print banners, and what was cut is no line."""
    found = []
    for line in written.decode(errors="replace").splitlines():
        if line.startswith(("{", "null")):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def _how(status: int, complaints: bytes) -> str:
    """Say how a process ended: the last that it said, or else its signal or status."""
    if said := complaints.decode(errors="replace").strip().splitlines()[-1:]:
        return said[0][:300]
    if status < 0:
        return f"it ended by {signal.Signals(-status).name}"
    return f"it ended with {status}"
