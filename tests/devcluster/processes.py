"""Programs of a cluster: started, logged, watched, and never left behind.

Each gets the parent-death signal, so that it ends with the process that started it, and carries the
cluster's mark in its environment, so that `tests.devcluster.sweep` finds what escaped all the same.

Shell: starts and signals processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.devcluster.errors import NotReadyError, ProcessDiedError, StateError

MARK = "GPU_WORKSPACES_DEVCLUSTER"
"""Environment variable of every process of a cluster; its value is the cluster's state folder."""
TAIL_LINES = 15
TAIL_BYTES = 16384
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The kernel sends the parent-death signal when the *thread* that forked ends, so one thread that lives as
# long as this process forks them all.
_forker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forker")


class Process:
    """A program of the cluster that this Python process started."""

    def __init__(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str], log: Path, wrapped: bool
    ) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.log = log
        self.stopped = False
        """Whether it was asked to end, so that its end is no failure."""
        self._env = dict(env)
        self._wrapped = wrapped
        self._popen = _forker.submit(self._fork).result()

    def _fork(self) -> subprocess.Popen[bytes]:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id on the host: of the program itself, also where it runs inside a node."""
        inner = children(self._popen.pid) if self._wrapped else []
        return inner[0] if inner else self._popen.pid

    def poll(self) -> int | None:
        """Exit code (negative: the signal that killed it), or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises `NotReadyError` after `timeout` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise NotReadyError(f"{self.name} to end", timeout or 0, tail(self.log)) from None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program; nothing happens if it ended already."""
        if self.poll() is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                self._popen.poll()

    def stop(self, timeout: float = 5) -> int:
        """End it: SIGTERM, and SIGKILL after `timeout` seconds."""
        self.stopped = True
        self.signal(signal.SIGTERM)
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            return self._popen.wait()

    def kill(self) -> int:
        """End it at once, as a crash would."""
        self.stopped = True
        self.signal(signal.SIGKILL)
        return self._popen.wait()

    def restart(self) -> None:
        """Start it again with the same arguments; it is stopped first if it runs."""
        if self.poll() is None:
            self.stop()
        self._popen = _forker.submit(self._fork).result()
        self.stopped = False

    def check(self) -> None:
        """Raise `ProcessDiedError` if it ended without being asked to."""
        code = self.poll()
        if code is not None and not self.stopped:
            raise ProcessDiedError(self.name, code, log=self.log, tail=tail(self.log))


class Processes:
    """All programs that this Python process started for one cluster, by name."""

    def __init__(self, state_dir: Path, *, path: Sequence[Path] = ()) -> None:
        folders = dict.fromkeys(str(folder) for folder in path)
        self._env = {
            "HOME": str(state_dir),
            "LANG": "C.UTF-8",
            "PATH": ":".join([*folders, SYSTEM_PATH]),
            MARK: str(state_dir),
        }
        self._by_name: dict[str, Process] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def env(self) -> Mapping[str, str]:
        """What every program finds in its environment: nothing of the developer's own."""
        return self._env

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        wrapped: bool = False,
    ) -> Process:
        """Start a program under a name that no running one has.

        `wrapped`: what is started runs the program proper as its child.
        """
        with self._lock:
            if self._closed:
                raise StateError(
                    name, "is not started: its cluster is being stopped", "start the cluster again"
                )
            known = self._by_name.get(name)
            if known is not None and known.poll() is None:
                raise StateError(name, "runs already", "stop it first or choose another name")
            process = Process(
                name, [str(a) for a in argv], env=self._env | dict(env or {}), log=log, wrapped=wrapped
            )
            self._by_name[name] = process
            return process

    def get(self, name: str) -> Process:
        """The process of that name; raises `StateError` listing those there are."""
        with self._lock:
            if name not in self._by_name:
                raise StateError(
                    name, "is no process of the cluster", f"there are: {', '.join(sorted(self._by_name))}"
                )
            return self._by_name[name]

    def all(self) -> list[Process]:
        """In the order of their start."""
        with self._lock:
            return list(self._by_name.values())

    def check(self) -> None:
        """Raise `ProcessDiedError` for the first one that ended without being asked to."""
        for process in self.all():
            process.check()

    def stop_all(self, timeout: float = 5) -> None:
        """End all of them, last started first, within about `timeout` seconds; nothing starts afterwards."""
        with self._lock:
            self._closed = True
        running = [p for p in reversed(self.all()) if p.poll() is None]
        for process in running:
            process.stopped = True
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout
        for process in running:
            process.stop(max(0.1, deadline - time.monotonic()))


def children(pid: int) -> list[int]:
    """Process ids of a single-threaded process's children."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Last lines of a log, or nothing if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(f"  {line}" for line in text.splitlines()[-lines:])
