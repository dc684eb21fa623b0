"""Long work on the event loop, in turns: whoever asks something meanwhile is answered between two of them.

Shell: yields to the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

TURN: Final = 20
"""Items between two yields. An answer takes several rounds of the loop, and waits for one turn in each."""


async def in_turns(items: Iterable[T], *, turn: int = TURN) -> AsyncIterator[T]:
    """Give items one after the other, and the loop a chance after each `turn` of them.

    What the items are about may have changed in between: look again, do not remember.
    """
    left = iter(items)
    while batch := tuple(islice(left, turn)):
        for one in batch:
            yield one
        await asyncio.sleep(0)
