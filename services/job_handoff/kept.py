"""What users keep in the store, as the store itself shows it.

It is listed every few minutes for those who do something, and always anew before anything is refused. What is
written meanwhile is counted by name, so a file that is sent again counts once. Nothing is written down about
it anywhere: what goes from the store, by whomever, is room again.

Shell: talks to the store, reads the clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from . import places
from .ids import owner_prefix
from .room import Shelf, check_room
from .settings import Bounds
from .store import Found, Store
from .verdicts import RunRefusedError

FRESH: Final = 300.0
"""Seconds that a listing is good for as long as there is room."""
SURE: Final = 2.0
"""Seconds that it is good for to refuse by."""


@dataclass(slots=True)
class _Known:
    """What is known of one user."""

    shelf: Shelf = field(default_factory=Shelf)
    listed: float = float("-inf")
    pending: dict[str, int] = field(default_factory=dict)
    """Files that are being written."""
    late: dict[str, int] = field(default_factory=dict)
    """Files that were written since the latest listing began."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_idle(self, now: float) -> bool:
        """Say whether it is worth nothing any more."""
        return now - self.listed > FRESH and not self.pending and not self.lock.locked()


class Kept:
    """What users keep."""

    def __init__(self, store: Store, bounds: Bounds) -> None:
        self._store, self._bounds = store, bounds
        self._users: dict[str, _Known] = {}

    async def usage(self, user: str) -> Shelf:
        """Give what a user keeps, a few minutes old at most, with what is written at this moment."""
        return (await self._known(user, FRESH)).shelf

    async def check(self, user: str, new: Mapping[str, int], *, slack: float = 1.0) -> None:
        """Refuse files that do not fit, by how things stand at this moment.

        Raises
        ------
        RunRefusedError
            `too-much-kept`.
        """
        try:
            check_room((await self._known(user, FRESH)).shelf, new, self._bounds, slack=slack)
        except RunRefusedError:
            check_room((await self._known(user, SURE)).shelf, new, self._bounds, slack=slack)

    @asynccontextmanager
    async def adding(self, user: str, new: Mapping[str, int], *, slack: float = 1.0) -> AsyncIterator[None]:
        """Count files while they are written, and afterwards if they were.

        Raises
        ------
        RunRefusedError
            `too-much-kept`.
        """
        await self.check(user, new, slack=slack)
        known = self._users[user]
        before = {path: known.shelf.sizes.get(path) for path in new}
        known.pending |= new
        _count(known.shelf, new)
        try:
            yield
        except BaseException:
            for path, size in before.items():
                known.shelf.drop(path)
                if size is not None:
                    known.shelf.put(path, size)
            raise
        else:
            known.late |= new
        finally:
            for path in new:
                known.pending.pop(path, None)

    async def note(self, user: str, path: str, size: int, *, slack: float = 1.0) -> None:
        """Count a file that somebody else is let write."""
        await self.check(user, {path: size}, slack=slack)
        self._users[user].shelf.put(path, size)

    def forget(self, user: str) -> None:
        """List anew next time: much has gone."""
        if known := self._users.get(user):
            known.listed = float("-inf")

    async def folders(self, user: str) -> tuple[str, ...]:
        """Give the folders of a user, one below each team that there ever was."""
        teams = await self._store.folders("")
        return tuple(f"{owner_prefix(team, user)}/" for team in teams if team != places.AUDIT)

    async def files(self, user: str) -> tuple[Found, ...]:
        """List all files of a user."""
        lists = [await self._store.list(folder) for folder in await self.folders(user)]
        return tuple(file for found in lists for file in found)

    async def _known(self, user: str, good_for: float) -> _Known:
        now = time.monotonic()
        if user not in self._users:
            for name in [name for name, one in self._users.items() if one.is_idle(now)]:
                del self._users[name]
        known = self._users.setdefault(user, _Known())
        async with known.lock:
            if time.monotonic() - known.listed > good_for:
                began, known.late = time.monotonic(), {}
                found = await self.files(user)
                shelf = Shelf()
                _count(shelf, {file.path: file.size for file in found})
                _count(shelf, known.late | known.pending)
                known.shelf, known.listed = shelf, began
        return known


def _count(shelf: Shelf, files: Mapping[str, int]) -> None:
    for path, size in files.items():
        shelf.put(path, size)
