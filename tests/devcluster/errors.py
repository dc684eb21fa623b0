"""What can go wrong with a development cluster, each with its place and remedy.

DevClusterError
├── SpecError(source, problems)              the cluster file is wrong
├── HostError(problem, remedy)               this machine lacks something
├── ProcessDiedError(name, code, log, tail)       a program of the cluster ended by itself
├── NotReadyError(what, seconds, last)            a condition did not come true in time
├── ApiError(method, path, status, message)  the API server refused
├── CommandFailedError(argv, code, output)        a helper command of the host failed
└── StateError(name, problem, remedy)        a cluster or program is up already, or is not
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


class DevClusterError(Exception):
    """Anything about a development cluster that the person who started it should read."""


class SpecError(DevClusterError):
    """The cluster file is wrong; all problems at once."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        super().__init__("\n".join([f"{source}:", *(f"  {problem}" for problem in problems)]))
        self.source = source
        self.problems = tuple(problems)


class HostError(DevClusterError):
    """This machine lacks something that the cluster needs."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\n  {remedy}")
        self.problem = problem
        self.remedy = remedy


class ProcessDiedError(DevClusterError):
    """A program of the cluster ended by itself."""

    def __init__(self, name: str, code: int, *, log: Path, tail: str) -> None:
        how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
        super().__init__(f"{name} {how}; its last lines ({log}):\n{tail or '  (it wrote nothing)'}")
        self.name = name
        self.code = code
        self.log = log


class NotReadyError(DevClusterError):
    """A condition did not come true in time. `last` is what was seen last."""

    def __init__(self, what: str, seconds: float, last: str = "") -> None:
        super().__init__(f"{what}: not after {seconds:.0f} s" + (f"\n  last seen: {last}" if last else ""))
        self.what = what
        self.seconds = seconds
        self.last = last


class ApiError(DevClusterError):
    """The API server refused a request."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {message}")
        self.method = method
        self.path = path
        self.status = status
        self.message = message


class CommandFailedError(DevClusterError):
    """A helper command of the host failed."""

    def __init__(self, argv: Sequence[str], code: int, output: str) -> None:
        super().__init__(f"`{shlex.join(argv)}` exited with {code}:\n{output.strip() or '(no output)'}")
        self.argv = tuple(argv)
        self.code = code
        self.output = output


class StateError(DevClusterError):
    """A cluster, or a program of it, is in no state for what was asked."""

    def __init__(self, name: str, problem: str, remedy: str) -> None:
        super().__init__(f"{name} {problem}\n  {remedy}")
        self.name = name
