"""Carries out build steps: threads, processes, logs and locks.

Shell: runs commands.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.errors import BuildError, DiskSpaceError, StepError, last_lines
from tests.devcluster.build.plan import (
    LIMITS,
    Step,
    batches,
    bytes_needed,
    seconds_left,
    startable,
    steps_missing,
)
from tests.devcluster.build.progress import Change, Report, State

BUILD_LOCK = "build"
"""Held shared by everyone who builds; who holds it alone may drop the build caches."""
TICK_SECONDS = 1.0
COULD_NOT_START = 127
"""The exit status of a command that was not found or cannot be executed, as shells have it."""


class StoppedError(BuildError):
    """A step was not finished because another one failed or the user interrupted."""


class Processes:
    """The running commands of one build, so that all can be ended at once."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def start(self, command: Sequence[str | Path], **options: object) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own; refuses once `stop` was called."""
        with self._lock:
            if self._stopped:
                raise StoppedError("the build was stopped")
            process: subprocess.Popen[bytes] = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]
            self._running.add(process)
        return process

    def finished(self, process: subprocess.Popen[bytes]) -> None:
        """Forget a command that has ended."""
        with self._lock:
            self._running.discard(process)

    def stop(self) -> None:
        """End every running command, and let no further one start."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)


class StepShell:
    """Runs one step's commands into its log; see `plan.Shell`."""

    def __init__(self, step: str, log: Path, *, lock: int, processes: Processes) -> None:
        self._step, self._log, self._lock, self._processes = step, log, lock, processes

    def __call__(
        self,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdout: Path | None = None,
    ) -> None:
        """Run one command; see `plan.Shell`."""
        with contextlib.ExitStack() as files:
            log = files.enter_context(self._log.open("ab", buffering=0))
            log.write(f"$ {' '.join(map(str, command))}\n".encode())
            output = files.enter_context(stdout.open("wb")) if stdout else log
            try:
                process = self._processes.start(
                    command,
                    cwd=cwd,
                    env={**os.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=log,
                    pass_fds=(self._lock,),  # see cache.locked: the command keeps the lock if we are killed
                )
            except OSError as error:
                log.write(f"{error}\n".encode())
                status = COULD_NOT_START
            else:
                status = process.wait()
                self._processes.finished(process)
        if status:
            raise StepError(
                step=self._step,
                command=_abridged(command),
                status=status,
                log=self._log,
                tail=last_lines(self._log),
            )


def _abridged(command: Sequence[str | Path]) -> str:
    """Enough of a command line to know it by."""
    words = [Path(command[0]).name, *map(str, command[1:3]), *(["…"] if len(command) > 3 else [])]
    return " ".join(words)


def log_path(step: str) -> Path:
    """Where the last build of a step has left its log."""
    return cache.cache_root() / "logs" / "build" / f"{step.replace(':', '-').replace(' ', '-')}.log"


def build(names: Iterable[str], steps: Mapping[str, Step], report: Report) -> None:
    """Build what is missing of `names` and what that needs, side by side where it helps.

    Much at once is built in batches, and the compiled packages of one are dropped before the next.

    Raises `UnknownNameError`, or `BuildError` of the first step that failed; the others are then stopped.
    """
    names = tuple(names)
    builder = _Build(report)
    later: list[list[Step]] = [[]]
    while later and steps_missing(names, steps):
        with cache.locked(BUILD_LOCK, shared=True):
            missing = steps_missing(names, steps)  # others may have built some, or dropped the build caches
            _check_space(missing)
            batch, *later = batches(missing) or [[]]
            builder.run(batch, later=[step for steps in later for step in steps])
        if later:
            drop_compiled()


def drop_compiled() -> None:
    """Drop the compiled packages, unless another process builds."""
    with cache.lock_if_free(BUILD_LOCK) as alone:
        if alone:
            cache.remove(cache.compiled())


def _check_space(missing: Iterable[Step]) -> None:
    """Raise `DiskSpaceError` if the disk would be full; what an interrupted build has left counts as done."""
    root = cache.cache_root()
    needed, free = bytes_needed(missing), shutil.disk_usage(root).free
    if free < needed and free < (needed := needed - cache.size_bytes(cache.scratch())):
        raise DiskSpaceError(at=root, needed=needed, free=free)


class _Build:
    """One build from its first step to its last, batch by batch."""

    def __init__(self, report: Report) -> None:
        self._waiting: list[Step] = []
        self._later: list[Step] = []
        self._running: dict[Future[float], tuple[Step, float]] = {}
        self._done_cost = 0.0
        self._done = 0
        self._report = report
        self._begin = time.monotonic()
        self._processes = Processes()
        self._held_up: list[str] = []

    def run(self, batch: Sequence[Step], *, later: Sequence[Step]) -> None:
        """Carry out a batch; the later ones are only told of."""
        self._waiting, self._later = list(batch), list(later)
        if self._done == 0:
            self._tell(Change.PLANNED)
        with ThreadPoolExecutor(sum(LIMITS.values()), "build") as threads:
            try:
                while self._waiting or self._running:
                    self._start(threads)
                    finished, _ = wait(self._running, TICK_SECONDS, FIRST_COMPLETED)
                    for future in finished:
                        self._finish(future)
                    while self._held_up:
                        self._tell(Change.WAITING, self._held_up.pop())
                    self._tell(Change.TICK)
            except BaseException:
                self._processes.stop()
                raise

    def _start(self, threads: ThreadPoolExecutor) -> None:
        for step in startable(self._waiting, [step for step, _ in self._running.values()]):
            self._waiting.remove(step)
            self._running[threads.submit(self._carry_out, step)] = (step, time.monotonic())
            self._tell(Change.STARTED, step.name)

    def _finish(self, future: Future[float]) -> None:
        step, _ = self._running.pop(future)
        seconds = future.result()
        self._done += 1
        self._done_cost += step.seconds
        self._tell(Change.FINISHED, step.name, seconds)

    def _carry_out(self, step: Step) -> float:
        """Do one step, unless another process has done it while we waited for its lock."""
        lane = step.lane or step.name
        with cache.locked(
            f"build-{lane.replace(':', '-')}", on_wait=lambda: self._held_up.append(step.name)
        ) as lock:
            begin = time.monotonic()
            if not step.target.exists():
                log = log_path(step.name)
                log.parent.mkdir(parents=True, exist_ok=True)
                log.unlink(missing_ok=True)
                with cache.staged(step.target) as part:
                    step.make(part, StepShell(step.name, log, lock=lock, processes=self._processes))
            return time.monotonic() - begin

    def _tell(self, change: Change, step: str = "", seconds: float = 0) -> None:
        now = time.monotonic()
        running = [(s, now - since) for s, since in self._running.values()]
        waiting = [*self._waiting, *self._later]
        left = sum(s.seconds for s in waiting) + sum(max(s.seconds - ran, 0) for s, ran in running)
        self._report(
            State(
                change=change,
                step=step,
                seconds=seconds,
                done=self._done,
                total=self._done + len(running) + len(waiting),
                running=tuple((s.name, ran) for s, ran in running),
                waiting=tuple(s.name for s in waiting),
                seconds_left=seconds_left(done=self._done_cost, left=left, elapsed=now - self._begin),
            )
        )
