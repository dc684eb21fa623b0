"""Work that is done again and again: one bad pass is noted and does not end it.

Shell: reads clocks, waits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from hub_ext.errors import WorkspaceError

log = logging.getLogger(__name__)

OUTCOMES: Final = ("done", "failed", "too-long")
FIRST_RETRY: Final = 1.0
"""Seconds to wait while no pass was ever done: a service may be up before the hub is. Doubled each time."""


class LoopMetrics:
    """What is counted about the loops of one service."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.passes = Counter(
            "gpu_workspaces_service_passes",
            "Passes of periodic work by how they ended.",
            ("loop", "outcome"),
            registry=registry,
        )
        self.seconds = Histogram(
            "gpu_workspaces_service_pass_seconds",
            "How long passes took that were done.",
            ("loop",),
            registry=registry,
        )
        self.last = Gauge(
            "gpu_workspaces_service_last_pass_timestamp_seconds",
            "When the last pass was done; alert when this is long ago.",
            ("loop",),
            registry=registry,
        )


class Loop:
    """One kind of periodic work."""

    def __init__(
        self,
        name: str,
        once: Callable[[], Awaitable[object]],
        *,
        every: timedelta,
        limit: timedelta | None = None,
    ) -> None:
        """Make a loop.

        Parameters
        ----------
        once
            Does one pass; the next begins `every` after the start of this one, never before its end, and
            sooner as long as none was ever done.
        limit
            A pass that takes longer is cancelled; by default ten times `every`, at least a minute.
        """
        self.name = name
        self._once = once
        self._every = every.total_seconds()
        self._limit = (limit or max(10 * every, timedelta(minutes=1))).total_seconds()
        self._wake = asyncio.Event()
        self._ending = False
        self.last_done: datetime | None = None
        self.problem = ""
        """What was wrong with the last pass; empty for nothing."""

    def soon(self) -> None:
        """Begin the next pass as soon as the present one has ended."""
        self._wake.set()

    def end(self) -> None:
        """Begin no further pass."""
        self._ending = True
        self._wake.set()

    async def run(self, metrics: LoopMetrics) -> None:
        """Pass after pass, until `end`."""
        for outcome in OUTCOMES:
            metrics.passes.labels(self.name, outcome)
        retry = FIRST_RETRY
        while not self._ending:
            self._wake.clear()
            started = time.monotonic()
            outcome = await self._pass()
            took = time.monotonic() - started
            metrics.passes.labels(self.name, outcome).inc()
            if outcome == "done":
                self.last_done = datetime.now(UTC)
                metrics.seconds.labels(self.name).observe(took)
                metrics.last.labels(self.name).set_to_current_time()
            pause = self._every if self.last_done else min(retry, self._every)
            retry = min(2 * retry, self._every)
            await self._rest(pause - took)

    async def _pass(self) -> str:
        try:
            async with asyncio.timeout(self._limit) as limit:
                await self._once()
        except TimeoutError as error:
            if limit.expired():
                self._note(f"cancelled after {self._limit:g} seconds")
                return "too-long"
            self._note(repr(error), error)
        except WorkspaceError as error:
            self._note(str(error))
        except Exception as error:  # noqa: BLE001 - one bad pass ends no service
            self._note(repr(error), error)
        else:
            self._note("")
            return "done"
        return "failed"

    def _note(self, problem: str, error: BaseException | None = None) -> None:
        """Log what is new: a server that is down for a night fills no disk."""
        if problem and problem != self.problem:
            log.error("pass failed: loop=%s problem=%s", self.name, problem, exc_info=error)
        elif self.problem and not problem:
            log.info("pass done again: loop=%s", self.name)
        self.problem = problem

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._wake.wait()
        except TimeoutError:
            return

    def state(self) -> dict[str, Any]:
        """Say how it goes, for `/health`; what went wrong is in the log, not there for everyone."""
        return {
            "ok": not self.problem,
            "lastDone": self.last_done.isoformat() if self.last_done else None,
        }
