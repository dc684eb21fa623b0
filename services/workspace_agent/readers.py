"""Takes samples: reads processes and GPUs in threads of their own, so that the server never waits.

A driver can hang for good; its thread is then left alone and asked again when it has come back.

Shell: reads clocks and starts threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from hub_ext.protocol import Attribution, SelfTest

from .gpus import GpuReading, attribute, merge
from .jupyter import Jupyter
from .nvml import Nvml, NvmlError
from .processes import Roots, Stat, measure
from .procfs import read_table
from .reports import Sample, pids_of
from .self_test import no_library, run_self_test

log = logging.getLogger(__name__)

READ_SECONDS = 10
"""How long a sample waits for a reader."""
RETRY_SECONDS = 600
"""Until a self-test that learned nothing is made again."""
WINDOW_SECONDS = 900
"""The longest window: what was used before is forgotten when no report gets through."""
NOT_TESTED = SelfTest(attribution=Attribution.UNTRUSTED, detail="the self-test has not ended")

Result = TypeVar("Result")


class Reader:
    """Does one thing at a time in a thread that does not hold up the end of the server."""

    def __init__(self, name: str) -> None:
        self._name = f"workspace-agent-{name}"
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[[], Result]) -> Result | None:
        """What the function returns, or None while it, or an earlier one, takes too long."""
        if self._thread and self._thread.is_alive():
            return None
        done: Future[Result] = Future()
        self._thread = threading.Thread(target=_work, args=(function, done), name=self._name, daemon=True)
        self._thread.start()
        finished, _ = await asyncio.wait([asyncio.wrap_future(done)], timeout=READ_SECONDS)
        return finished.pop().result() if finished else None


def _work(function: Callable[[], Result], done: Future[Result]) -> None:
    try:
        done.set_result(function())
    except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
        done.set_exception(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at the process table."""

    table: tuple[Stat, ...]
    at: float
    """By the clock that only goes forward."""
    wall: float


class Sampler:
    """Takes samples of one server. What it used is measured from the last look that was `settled`."""

    def __init__(self, jupyter: Jupyter) -> None:
        self.self_test = NOT_TESTED
        self._jupyter = jupyter
        self._processes, self._gpus = Reader("processes"), Reader("gpus")
        self._before: Look | None = None
        self._last: Look | None = None
        self._watched: GpuReading | None = None
        self._nvml: Nvml | None = None
        self._tested_at: float | None = None
        self._certain = False
        self._complaint = ""
        self._helpers: set[int] = set()

    async def take(self) -> Sample:
        """Read everything once."""
        kernels, terminals = await self._jupyter.kernels(), self._jupyter.terminals()
        gpus = await self.watch_gpus()
        look = await self._processes.run(self._look)
        before = self._before
        if before and self._last and self._last.at - before.at > WINDOW_SECONDS:
            before = self._last
        self._before, self._last = before or look, look or self._last
        seconds = look.at - before.at if look and before else 0.0
        roots = Roots(
            server=os.getpid(),
            kernels=pids_of(kernels),
            shells={terminal.pid: terminal.shell for terminal in terminals},
            helpers=frozenset(self._helpers),
        )
        return Sample(
            uses=measure(
                before.table if before else (),
                look.table if look else (),
                roots=roots,
                begun=before.wall if before else 0,
                seconds=seconds,
            ),
            window_seconds=seconds,
            gpus=gpus,
            kernels=kernels,
            terminals=terminals,
            complete=look is not None,
        )

    async def watch_gpus(self) -> GpuReading:
        """Read the GPUs; drivers remember what was used for less than a minute."""
        reading = await self._gpus.run(self._read_gpus) or GpuReading(complete=False)
        self._watched = merge(self._watched, reading)
        return self._watched

    def settle(self) -> None:
        """The last sample reached the culler: the next one is measured from there."""
        self._before, self._watched = self._last or self._before, None

    def _look(self) -> Look:
        return Look(table=read_table(), at=time.monotonic(), wall=time.time())

    def _read_gpus(self) -> GpuReading:
        try:
            self._test()
            devices = self._nvml.read() if self._nvml else ()
        except NvmlError as error:
            if str(error) != self._complaint:
                log.warning("workspace agent: the GPU driver did not answer: %s", error)
            self._complaint = str(error)
            return GpuReading(complete=False)
        self._complaint = ""
        return attribute(devices, self.self_test.attribution)

    def _test(self) -> None:
        """Make the self-test, unless its result is known or it was tried lately."""
        now = time.monotonic()
        if self._tested_at is not None and (self._certain or now - self._tested_at < RETRY_SECONDS):
            return
        self._tested_at = now
        try:
            self._nvml = self._nvml or Nvml()
        except NvmlError as error:
            self.self_test, self._certain = no_library(error), True
            return
        try:
            outcome = run_self_test(self._nvml, self._helpers.add)
        finally:
            self._helpers.clear()  # its number may soon be another process's
        self.self_test, self._certain = outcome.result, outcome.certain
        log.info(
            "workspace agent: GPU attribution is %s: %s", self.self_test.attribution, self.self_test.detail
        )
