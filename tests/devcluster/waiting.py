"""Waiting for a condition.

Shell: reads the clock and sleeps.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

from tests.devcluster.errors import NotReadyError

Check = Callable[[], None]
"""Raises when it is of no use to wait any longer, because a program died."""
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 240
"""How long to wait for what comes true on its own. It says that something is broken, never how fast it is: a
machine that does much else may take ten times as long as an idle one."""


def nothing() -> None:
    """The check of a wait that nothing can cut short."""


def until(
    missing: Callable[[], str | None], *, what: str, timeout: float = PATIENCE_SECONDS, check: Check = nothing
) -> None:
    """Poll until nothing is `missing`; it returns what is, in words. Raises `NotReadyError`."""
    deadline = time.monotonic() + timeout
    while (last := missing()) is not None:
        check()
        if time.monotonic() > deadline:
            raise NotReadyError(what, timeout, last)
        time.sleep(POLL_SECONDS)


async def until_met(condition: Callable[[], object | Awaitable[object]], *, what: str) -> None:
    """Poll a condition, awaited or not, while the event loop goes on. Raises `NotReadyError`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        met = condition()
        last = await met if inspect.isawaitable(met) else met
        if last:
            return
        if time.monotonic() > deadline:
            raise NotReadyError(what, PATIENCE_SECONDS, repr(last))
        await asyncio.sleep(POLL_SECONDS)
