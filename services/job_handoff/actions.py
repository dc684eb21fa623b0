"""Ending a run, and doing it again.

Shell: talks to cluster and store.
"""

from __future__ import annotations

import secrets
from typing import Any

from hub_ext.selection_access import Person

from .board import Board, unknown
from .core import Core
from .desk import Desk
from .ids import ANNOTATION_CANCELED
from .keeper import Keeper
from .reasons import RunReason
from .record import Record
from .seen import Seen
from .status import Phase, Status
from .steps import steps_of
from .submitted import Submitted
from .texts import sentence
from .verdicts import RefusalReason, RunRefusedError


class Actions:
    """What users and admins do with runs."""

    def __init__(self, core: Core, board: Board, desk: Desk, keeper: Keeper) -> None:
        self._core, self._board, self._desk, self._keeper = core, board, desk, keeper

    async def cancel(self, person: Person, run: str, *, admin: bool = False) -> Seen:
        """End a run, or a schedule, whose runs go on; ending one that has ended changes nothing.

        Its record is kept. Where the store does not answer, the run loses its quota now and is filed and
        removed later.
        """
        seen = await self._board.one(person, run, admin=admin)
        if seen.obj is None or seen.status.phase.has_ended:
            return seen
        await self._core.audit("canceled", seen.record, actor=person.name)
        now = self._core.now()
        if seen.obj["kind"] == "CronJob":
            text = sentence(RunReason.CANCELED)
            status = Status(phase=Phase.CANCELED, reason=RunReason.CANCELED, text=text, since=now, ended=now)
            await self._keeper.file_schedule(seen, status)
            await self._core.cluster.remove(seen.obj)
            return Seen(record=seen.record, status=status, steps=steps_of(seen.record, status))
        when = now.isoformat(timespec="seconds")
        obj = await self._core.cluster.annotate(seen.obj, {ANNOTATION_CANCELED: when})
        canceled = await self._board.live(obj, seen.record)
        if not await self._keeper.file(canceled) and canceled.around and canceled.around.workload:
            await self._core.cluster.deactivate(canceled.around.workload)
        return canceled

    async def pause(self, person: Person, run: str, *, paused: bool) -> Seen:
        """Let a schedule rest, or go on."""
        seen = await self._board.one(person, run)
        if seen.obj is None or seen.obj["kind"] != "CronJob":
            raise unknown(run)
        await self._core.cluster.suspend_schedule(seen.obj, suspended=paused)
        return await self._board.one(person, run)

    async def retry(self, person: Person, run: str, *, key: str | None = None) -> Submitted:
        """Do a run that has ended again, from its checkpoints; what it asked for is judged anew.

        Raises
        ------
        RunRefusedError
            It has not ended, or would not be accepted today.
        """
        seen = await self._board.one(person, run)
        if not seen.status.phase.has_ended:
            raise RunRefusedError(RefusalReason.NOT_ENDED, "The run has not ended.", help="Cancel it first.")
        # Each run of a schedule begins anew.
        resume = seen.status.phase is not Phase.SUCCEEDED and not seen.record.is_schedule
        body = self.body_of(seen.record, resume=resume)
        return await self._desk.submit(person.name, body | {"key": key or secrets.token_hex(16)})

    def body_of(self, record: Record, *, resume: bool = False) -> dict[str, Any]:
        """Give the request of a run, to be sent again or to be changed first."""
        body = {name: value for name, value in record.request.items() if value is not None}
        body["release"] = False
        if resume:
            body["resumeFrom"] = record.id
        return body
