"""Asking another system again where it may answer next time.

Shell: waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeVar

from hub_ext.errors import RemoteError

T = TypeVar("T")

TRIES: Final = 3
FIRST_DELAY: Final = 0.5
"""Seconds before the second try; doubled from then on."""


async def persistently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask up to `TRIES` times; only for questions, never for what changes something.

    Raises
    ------
    RemoteError
        The last try failed, or one failed in a way that does not pass.
    """
    delay = FIRST_DELAY
    for _ in range(TRIES - 1):
        try:
            return await ask()
        except RemoteError as error:
            if not passes(error):
                raise
        await asyncio.sleep(delay)
        delay *= 2
    return await ask()


def passes(error: RemoteError) -> bool:
    """Say whether an error may be gone a moment later: no answer, too busy, the other's own fault."""
    status = error.status
    return status is None or status == HTTPStatus.TOO_MANY_REQUESTS or status >= 500
