"""What can go wrong while the development cluster's parts are built.

BuildError
├── UnknownNameError      no such program, image or manifest
├── ToolchainError        Go is missing or too old
├── MissingToolsError     programs from Debian are missing and cannot be installed
├── DiskSpaceError        too little room for the build caches
└── StepError             a command of a build step failed; its log is kept
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from tests.devcluster.cache import ROOT_VARIABLE

TAIL_LINES = 15


class BuildError(Exception):
    """A part of the development cluster could not be had."""


class UnknownNameError(BuildError):
    """Somebody asked for a part that is in no table."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        near = difflib.get_close_matches(name, self.known, n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else "`python -m tests.devcluster.build --list` shows all."
        )
        super().__init__(f"nothing called {name!r} can be built; {hint}")


class ToolchainError(BuildError):
    """Go is missing or older than a module asks for."""

    def __init__(self, *, needed: str, module: Path, found: str | None, at: Path | None) -> None:
        self.needed, self.module, self.found, self.at = needed, module, found, at
        have = f"found {found} at {at}" if at else "no `go` was found in PATH or /usr/local/go/bin"
        super().__init__(
            f"Go {needed} or newer is needed ({module} asks for it); {have}. "
            "Install it from https://go.dev/dl/ into /usr/local/go, or put a newer `go` first in PATH."
        )


class MissingToolsError(BuildError):
    """Programs are missing that this machine's package manager would have to install."""

    def __init__(self, missing: Iterable[str], packages: Iterable[str], *, because: str) -> None:
        self.missing, self.packages = tuple(missing), tuple(packages)
        super().__init__(
            f"missing: {', '.join(self.missing)}; {because}. "
            f"As root: apt-get install --no-install-recommends {' '.join(self.packages)}"
        )


class DiskSpaceError(BuildError):
    """The disk would be full before all is built."""

    def __init__(self, *, at: Path, needed: int, free: int) -> None:
        self.at, self.needed, self.free = at, needed, free
        super().__init__(
            f"what is missing takes about {needed / 1e9:.0f} GB in {at} while it is built (most is dropped "
            f"afterwards); {free / 1e9:.1f} GB are free. Make room, or name a folder on a larger disk in "
            f"{ROOT_VARIABLE}."
        )


class StepError(BuildError):
    """A command of a build step ended with an error."""

    def __init__(self, *, step: str, command: str, status: int, log: Path, tail: str) -> None:
        self.step, self.command, self.status, self.log, self.tail = step, command, status, log, tail
        ended = f"signal {-status}" if status < 0 else f"exit status {status}"
        super().__init__(
            f"building {step} failed: `{command}` ended with {ended}. "
            f"Last lines of {log}:\n{tail.rstrip() or '(no output)'}"
        )


def last_lines(log: Path, count: int = TAIL_LINES) -> str:
    """The last lines of a log; reads at most its last 64 KiB."""
    with log.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 65536))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-count:])
