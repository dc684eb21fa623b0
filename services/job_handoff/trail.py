"""The audit trail: who ran which image and source as whom, outside of users' reach.

Each entry is in the log and in the store. That of a submission is made from what stands on the run's object,
under a name that follows from it: one that is missing, because the service was killed after it had created
the object or because the store did not answer, is made up for when the object is seen, and never there twice.

Shell: talks to the store, writes the log.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from hub_ext.cluster.times import read_time

from . import places
from .ids import base_id
from .record import Record
from .store import Store, StoreError

audit_log = logging.getLogger("gpu_workspaces.audit")
log = logging.getLogger(__name__)

SUBMITTED: Final = "submitted"
PATIENCE: Final = timedelta(minutes=1)
"""Time that a submission has to note itself."""


class Trail:
    """Where entries are written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._noted: set[str] = set()
        """Runs whose submission is known to be in the store."""

    async def note(
        self,
        event: str,
        record: Record,
        *,
        actor: str,
        now: datetime,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Note who did what with a run; the log has it in any case, the store where it answers."""
        moment = _submitted(record, now) if event == SUBMITTED else now
        text = json.dumps(
            {"event": event, "time": moment.isoformat(timespec="seconds"), "actor": actor}
            | entry_of(record)
            | dict(more or {}),
            ensure_ascii=True,
        )
        audit_log.info("run %s: %s", event, text)
        try:
            await self._store.put(places.audit_path(moment.date(), f"{record.id}-{event}"), text.encode())
        except StoreError as error:
            log.warning("audit entry not stored: run=%s error=%s", record.id, error)
            return
        if event == SUBMITTED:
            self._noted.add(record.id)

    async def complete(self, records: Iterable[Record], now: datetime) -> None:
        """Note the submissions of runs on the cluster that are missing, as by their owners at their time.

        Raises
        ------
        StoreError
            The store does not answer; what is missing is looked for again.
        """
        found = {record.id: record for record in records}
        self._noted &= found.keys()
        for record in found.values():
            if now - _submitted(record, now) >= PATIENCE:
                await self.ensure(record, now)

    async def ensure(self, record: Record, now: datetime) -> None:
        """Note the submission of a run if it is missing.

        Raises
        ------
        StoreError
            The store does not answer.
        """
        # The runs of a schedule were not submitted one by one.
        if record.id in self._noted or base_id(record.id) != record.id:
            return
        day = _submitted(record, now).date()
        if await self._store.size(places.audit_path(day, f"{record.id}-{SUBMITTED}")) is not None:
            self._noted.add(record.id)
            return
        late = {"noted": now.isoformat(timespec="seconds")}
        await self.note(SUBMITTED, record, actor=record.user, now=now, more=late)


def entry_of(record: Record) -> dict[str, Any]:
    """Give what an entry says about a run."""
    return {
        "user": record.user,
        "run": record.id,
        "team": record.team,
        "kind": record.kind,
        "profile": record.profile,
        "image": record.image,
        "source": dict(record.request.get("source") or {}),
        "entry": str((record.request.get("entry") or {}).get("path", "")),
    }


def _submitted(record: Record, now: datetime) -> datetime:
    return read_time(record.submitted) or now
