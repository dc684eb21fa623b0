"""One attempt to start a server, for the spawner that makes it and for those who watch it.

Shell: waits on the event loop; what it waits for is told by `cluster.hub.Start`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar

from .cluster.hub import Start
from .cluster.starts import Outcome
from .cluster.waits import Stage, Wait
from .patience import Patience
from .quota.verdicts import Refusal

REPEAT: Final = 10.0
"""Seconds until a wait whose reason is still the same is told again: each line stays on the page."""

QUICK: Final = 2.0
"""Seconds after which a start is looked at: most are up by then, and looking at each of many costs."""

_PERCENT: Final = {
    Stage.REQUESTED: 5,
    Stage.QUEUED: 10,
    Stage.WAITING: 15,
    Stage.SCALING: 20,
    Stage.VOLUME: 40,
    Stage.PULLING: 50,
    Stage.PREPARING: 70,
    Stage.STARTING: 80,
    Stage.RUNNING: 90,
}

_Result = TypeVar("_Result")


class Attempt:
    """From the moment the hub asks for a server until its pod runs, or until it is given up."""

    def __init__(self) -> None:
        self.start: Start | None = None
        """The reservation, once there is one."""
        self.settled = asyncio.Event()
        """There is a reservation, or there will be none."""
        self.created = asyncio.Event()
        """The API server has taken the pod."""
        self.running = True
        """Its pod is not up yet."""
        self.over = False
        """Nothing more will be heard of it."""
        self.outcome = Outcome.FAILED
        self.reason = "error"
        """Why it failed, in our own words."""

    def begin(self, start: Start) -> None:
        """Note that room is reserved."""
        self.start = start
        self.settled.set()

    def note(self, problem: Refusal) -> None:
        """Note that the API server took no pod: it is tried again, or nothing needs to be held for it."""
        if self.start is None:
            return
        if problem.retry:
            self.start.hold_up(problem)
        else:
            self.start.refused(problem.reason.value)

    def fail(self) -> None:
        """Note that it was given up, whatever was left behind."""
        self.running, self.over = False, True
        self.settled.set()
        if self.start is not None:
            self.start.failed(self.reason, self.outcome)

    async def trouble(self, patience: Patience) -> Wait | None:
        """Give the wait that cannot end well as soon as there is one; None if no more is to be told.

        Raises
        ------
        TimeoutError
            Patience is at its end.
        """
        clock = asyncio.get_running_loop().time
        since, queued = clock(), False
        async with asyncio.timeout(patience.left(queued=queued)) as limit:
            await self.created.wait()
            if self.start is None:
                return None
            await asyncio.sleep(QUICK)
            async with aclosing(self.start.waits()) as waits:
                async for wait in waits:
                    if wait.fatal:
                        return wait
                    if wait.counts is queued:
                        now = clock()
                        patience = patience.after(now - since, queued=queued)
                        since, queued = now, not wait.counts
                        limit.reschedule(now + patience.left(queued=queued))
        return None

    def hand_over(self, spawn: asyncio.Future[Any] | None) -> None:
        """Note that the pod runs; whether the server answers is known when the hub's `spawn` is done."""
        self.running = False
        if spawn is None:
            self._end(None)
        else:
            spawn.add_done_callback(self._end)

    def _end(self, spawn: asyncio.Future[Any] | None) -> None:
        self.over = True
        if self.start is None:
            return
        if spawn is None:
            self.start.succeeded()
        elif spawn.cancelled():
            self.start.failed("", Outcome.CANCELLED)
        elif spawn.exception() is not None:
            self.start.failed("no-answer")
        else:
            self.start.succeeded()

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell how it goes as the hub's progress page and its API take it: texts are plain, never HTML."""
        await self.settled.wait()
        if self.start is None:
            return
        clock = asyncio.get_running_loop().time
        told: Wait | None = None
        when, percent = 0.0, 0
        async for wait in self.start.waits():
            if told is not None and told.reason is wait.reason and clock() - when < REPEAT:
                continue
            told, when = wait, clock()
            percent = max(percent, _PERCENT.get(wait.stage, 0))
            yield {
                "progress": percent,
                "message": wait.text,
                "stage": wait.stage,
                "reason": wait.reason,
                "warning": wait.warning,
            }


async def unless(work: Coroutine[Any, Any, _Result], guard: Coroutine[Any, Any, None]) -> _Result:
    """Await `work`, unless `guard` raises first; whichever is left is cancelled."""
    main, watcher = asyncio.ensure_future(work), asyncio.ensure_future(guard)
    try:
        await asyncio.wait({main, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if watcher.done() and not main.done():
            watcher.result()
        return await main
    finally:
        main.cancel()
        watcher.cancel()
        await asyncio.gather(main, watcher, return_exceptions=True)
