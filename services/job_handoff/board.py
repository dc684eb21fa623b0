"""Looking at runs: how they stand, what they said, what they left behind.

A run is read from the cluster while its object is there, and from the store afterwards. Whose it is, is
decided by the name in its record, never by what the one who asks says.

Shell: talks to cluster and store.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from hub_ext.errors import BadValueError
from hub_ext.selection_access import Person, teams_of

from . import places
from .core import Core
from .ids import NO_TEAM
from .record import Record, parse_record
from .schedules import Coming, coming, schedule_status
from .seen import Seen, queue_of, record_from, spokesman, status_of
from .status import Observed, Status, judge
from .steps import steps_of
from .store import Found, StoreError
from .verdicts import RefusalReason, RunRefusedError

log = logging.getLogger(__name__)

LISTED: Final = 100
"""Ended runs that a list shows at most."""
LOG_LINES: Final = 500
_LIVE_LOG: Final = 1024 * 1024


class Board:
    """Where runs are looked at."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def mine(self, person: Person, *, filed: bool = True) -> tuple[Seen, ...]:
        """List the runs of a user, the newest first.

        Parameters
        ----------
        filed
            Whether those are listed too that only the store knows.
        """
        return await self._listed(user=person.name, person=person if filed else None)

    async def everyones(self) -> tuple[Seen, ...]:
        """List the runs of everybody that the cluster still has, the newest first; for admins."""
        return await self._listed(user=None, person=None)

    async def _listed(self, *, user: str | None, person: Person | None) -> tuple[Seen, ...]:
        cluster, now = self._core.cluster, self._core.now()
        objects, workloads, pods = await asyncio.gather(
            cluster.runs(user), cluster.workloads(), cluster.pods(user)
        )
        found: dict[str, Seen] = {}
        for obj in objects:
            record = record_from(obj)
            # Labels are shortened names; the exact one decides.
            if record is None or (user is not None and record.user != user):
                continue
            observed = Observed(
                obj=obj,
                now=now,
                workload=workloads.get(obj["metadata"]["uid"]),
                pods=pods.get(record.id, ()),
            )
            found[record.id] = Seen(
                record=record, status=_status(observed), obj=obj, coming=_coming(observed)
            )
        if person is not None:
            for record in await self._filed(person):
                found.setdefault(record.id, Seen(record=record, status=status_of(record)))
        return tuple(sorted(found.values(), key=lambda one: one.record.submitted, reverse=True))

    async def _filed(self, person: Person) -> list[Record]:
        """Read the newest records of a user's ended runs."""
        catalog, _ = await self._core.catalog()
        listed: list[Found] = []
        for team in (*teams_of(catalog, person), NO_TEAM):
            listed += await self._core.store.list(places.record_folder(team, person.name))
        newest = sorted(listed, key=lambda one: one.modified, reverse=True)[:LISTED]
        contents = await asyncio.gather(*(self._core.store.get(one.path) for one in newest))
        records = []
        for content in contents:
            if content is None:
                continue
            try:
                record = parse_record(content.decode())
                status_of(record)
            except (BadValueError, ValueError) as error:
                # One that cannot be read must not hide the others.
                log.warning("record not read: user=%s error=%s", person.name, error)
                continue
            if record.user == person.name:
                records.append(record)
        return records

    async def one(self, person: Person, run: str, *, admin: bool = False) -> Seen:
        """Look at one run.

        Raises
        ------
        RunRefusedError
            There is none of that name, or it is somebody else's: nobody can tell the two apart.
        """
        obj = await self._core.cluster.find(run)
        record = record_from(obj) if obj is not None else None
        if obj is not None and record is not None and (admin or record.user == person.name):
            return await self.live(obj, record)
        catalog, _ = await self._core.catalog()
        stored = await self._core.stored_record(catalog, person, run)
        if stored is None or stored.user != person.name:
            raise unknown(run)
        status = status_of(stored)
        return Seen(record=stored, status=status, steps=steps_of(stored, status))

    async def live(self, obj: Mapping[str, Any], record: Record) -> Seen:
        now = self._core.now()
        around = await self._core.cluster.around(obj, now)
        positions = await self._core.cluster.positions(queue_of(obj)) if around.workload is not None else None
        name = around.workload["metadata"]["name"] if around.workload is not None else ""
        observed = Observed(
            obj=obj,
            now=now,
            workload=around.workload,
            pods=around.pods,
            events=around.events,
            position=(positions or {}).get(name),
            last_word=await self._json(record, "logs/end.json"),
        )
        status = _status(observed)
        return Seen(
            record=record,
            status=status,
            obj=obj,
            around=around,
            coming=_coming(observed),
            steps=steps_of(record, status, workload=around.workload, pods=around.pods, events=around.events),
            progress=await self._json(record, "logs/progress.json"),
        )

    async def _json(self, record: Record, name: str) -> Mapping[str, Any] | None:
        """Read what the runner wrote; a store that does not answer costs only that."""
        try:
            content = await self._core.store.get(places.file_path(record.team, record.user, record.id, name))
            found = json.loads(content) if content else None
        except (StoreError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    async def log(self, seen: Seen, *, lines: int = LOG_LINES) -> str:
        """Give the last lines of a run's log: from its pod while that is there, else what was kept."""
        if seen.obj is not None and seen.around is not None:
            pod = spokesman(seen.obj, seen.around.pods)
            text = await self._core.cluster.log(pod, lines=lines) if pod is not None else None
            if text is not None:
                return text
        return "\n".join((await self.kept_log(seen.record)).splitlines()[-lines:])

    async def kept_log(self, record: Record) -> str:
        """Give the log from the store: the one that was filed, else the latest that the runner sent."""
        filed = await self._core.store.get(places.file_path(record.team, record.user, record.id, "log.txt"))
        if filed is not None:
            return filed.decode(errors="replace")
        folder = places.file_path(record.team, record.user, record.id, "logs/")
        logs = [one for one in await self._core.store.list(folder) if one.path.endswith(".log")]
        if not logs:
            return ""
        newest = max(logs, key=lambda one: one.modified)
        content = await self._core.store.get(newest.path)
        return (content or b"").decode(errors="replace")

    async def pod_log(self, seen: Seen) -> str | None:
        """Give all of the log that the cluster still has, up to what is kept."""
        if seen.obj is None or seen.around is None:
            return None
        pod = spokesman(seen.obj, seen.around.pods)
        most = self._core.settings.bounds.log_size
        return await self._core.cluster.log(pod, most=max(most, _LIVE_LOG)) if pod is not None else None

    async def files(self, record: Record) -> dict[str, int]:
        """List the results of a run with their sizes."""
        folder = places.file_path(record.team, record.user, record.id, "outputs/")
        return {
            one.path.removeprefix(folder).lstrip("/"): one.size for one in await self._core.store.list(folder)
        }

    async def open(self, record: Record, name: str) -> tuple[int, AsyncIterator[bytes]]:
        """Open a result.

        Raises
        ------
        RunRefusedError
            There is none of that name.
        """
        found = await self._core.store.stream(
            places.file_path(record.team, record.user, record.id, f"outputs/{name}")
        )
        if found is None:
            raise RunRefusedError(RefusalReason.UNKNOWN_RUN, f"The run has no file {name!r}.", status=404)
        return found


def unknown(run: str) -> RunRefusedError:
    """Make the answer for a run that is not there or not theirs."""
    return RunRefusedError(RefusalReason.UNKNOWN_RUN, f"You have no run {run!r}.")


def _status(observed: Observed) -> Status:
    if observed.obj["kind"] == "CronJob":
        return schedule_status(observed.obj, observed.now)
    return judge(observed)


def _coming(observed: Observed) -> Coming | None:
    return coming(observed.obj, observed.now) if observed.obj["kind"] == "CronJob" else None
