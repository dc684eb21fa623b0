"""Removing what users no longer need: runs that have ended, and sources that no run names.

Shell: talks to cluster and store, reads the clock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from hub_ext.errors import BadValueError
from hub_ext.selection_access import Person

from . import places
from .board import Board
from .core import Core
from .record import Record, parse_record
from .retention import is_unused
from .seen import record_from
from .store import Found
from .verdicts import RefusalReason, RunRefusedError

log = logging.getLogger(__name__)

_AT_ONCE: Final = 16
"""Records that are read at the same time."""


class Remover:
    """Removes for good."""

    def __init__(self, core: Core, board: Board) -> None:
        self._core, self._board = core, board

    async def run(self, person: Person, run: str) -> int:
        """Remove a run that has ended: its object, record, results and log, and what only it needed.

        Checkpoints stay while another run goes on from them, and so does a source that another run names.

        Returns
        -------
        Files that were removed.

        Raises
        ------
        RunRefusedError
            `not-ended`, or there is no such run of theirs.
        """
        seen = await self._board.one(person, run)
        if not seen.status.phase.has_ended:
            raise RunRefusedError(RefusalReason.NOT_ENDED, "The run has not ended.", help="Cancel it first.")
        record = seen.record
        await self._core.audit("removed", record, actor=person.name)
        if seen.obj is not None:
            await self._core.cluster.remove(seen.obj)
        files = await self._core.kept.files(person.name)
        others = [one for one in await self._records(person.name, files) if one.id != run]
        going = {*places.made_by(record), *places.needed_by(record)} - _needed(others)
        return await self._delete(
            person.name, [one.path for one in files if places.group_of(one.path) in going]
        )

    async def unused_sources(self, user: str) -> int:
        """Remove sources that no run names, but for those that were sent a moment ago."""
        files, now = await self._core.kept.files(user), self._core.now()
        needed = _needed(await self._records(user, files))
        return await self._delete(
            user,
            [
                one.path
                for one in files
                if places.is_source(one.path) and one.path not in needed and is_unused(one.modified, now=now)
            ],
        )

    async def _delete(self, user: str, paths: list[str]) -> int:
        await self._core.store.delete(paths)
        self._core.kept.forget(user)
        log.info("files removed: user=%s files=%d", user, len(paths))
        return len(paths)

    async def _records(self, user: str, files: Iterable[Found]) -> list[Record]:
        """Read all records of a user: of runs on the cluster, and of those that are filed."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def read(path: str) -> bytes | None:
            async with gate:
                return await self._core.store.get(path)

        live = [record_from(obj) for obj in await self._core.cluster.runs(user)]
        filed = [one.path for one in files if places.is_record(one.path)]
        contents = await asyncio.gather(*(read(path) for path in filed))
        found = [*live, *(_parsed(content) for content in contents if content is not None)]
        return [record for record in found if record is not None and record.user == user]


def _needed(records: Iterable[Record]) -> set[str]:
    return {place for record in records for place in (*places.made_by(record), *places.needed_by(record))}


def _parsed(content: bytes) -> Record | None:
    try:
        return parse_record(content.decode(errors="replace"))
    except BadValueError:
        return None
