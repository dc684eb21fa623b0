"""What is done again and again: file what has ended, remove what was filed, open gates, free what is stuck.

Every pass starts from what the cluster shows; one that was cut off by a restart is simply made again.

Shell: talks to cluster and store, reads the clock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hub_ext.cluster.times import read_time
from hub_ext.errors import BadValueError, KubeError, RemoteError
from hub_ext.names import LABEL_JOB
from hub_ext.quota.policy import limits_for
from services.kube import NotFoundError

from . import places
from .board import Board
from .census import holding_of
from .core import Core
from .ids import ANNOTATION_CANCELED, ANNOTATION_FILED, ANNOTATION_STUCK
from .limits import GATE_ANNOTATION, openable
from .record import Record
from .retention import Fate, is_orphan, is_over, judge_object
from .seen import Seen, record_from, spent
from .status import Observed, Phase, Status, judge, read_end
from .store import StoreError

log = logging.getLogger(__name__)

WAITS_THAT_HEAL: Final = frozenset({"scaling-up", "pulling", "running", "preparing"})
"""Reasons for which a run that was admitted is given more time before its quota is taken back."""


class Keeper:
    """Does one pass at a time."""

    def __init__(self, core: Core, board: Board) -> None:
        self._core = core
        self._board = board

    async def tend(self) -> None:
        """Look after all runs: few questions for all of them, more only for those that need something."""
        cluster, now = self._core.cluster, self._core.now()
        objects, workloads, pods = await asyncio.gather(cluster.runs(), cluster.workloads(), cluster.pods())
        phases: dict[Phase, int] = defaultdict(int)
        found = [(obj, record_from(obj)) for obj in objects]
        await self._complete_trail([record for _, record in found if record is not None])
        for obj, record in found:
            if record is None or obj["kind"] == "CronJob":
                continue
            workload = workloads.get(obj["metadata"]["uid"])
            status = judge(Observed(obj=obj, now=now, workload=workload, pods=pods.get(record.id, ())))
            phases[status.phase] += 1
            try:
                await self._tend_one(obj, record, status, workload)
            except (RemoteError, BadValueError) as error:
                # One run that cannot be looked after must not keep the others from it.
                log.warning("run not looked after: run=%s error=%s", record.id, error)
        for phase in Phase:
            if not phase.has_ended:
                self._core.metrics.runs.labels(phase.value).set(phases[phase])

    async def _complete_trail(self, records: list[Record]) -> None:
        """Before anything is removed: who submitted what is read off the objects."""
        try:
            await self._core.trail.complete(records, self._core.now())
        except StoreError as error:
            log.warning("audit trail not completed: error=%s", error)

    async def _tend_one(
        self, obj: Mapping[str, Any], record: Record, status: Status, workload: Mapping[str, Any] | None
    ) -> None:
        notes = obj["metadata"].get("annotations") or {}
        if ANNOTATION_FILED in notes:
            await self._settle(obj, read_time(notes[ANNOTATION_FILED]))
        elif status.phase.has_ended:
            await self.file(await self._board.live(obj, record))
        elif status.phase is Phase.STARTING and self._is_late(workload):
            await self._check_stuck(await self._board.live(obj, record))

    def _is_late(self, workload: Mapping[str, Any] | None) -> bool:
        admitted = _admitted_at(workload)
        return admitted is not None and self._core.now() - admitted >= self._core.settings.stuck_after

    async def file(self, seen: Seen) -> bool:
        """Put record and log of a run that has ended into the store; False if the store takes nothing."""
        obj, record = seen.obj, seen.record
        if obj is None:
            return True
        try:
            await self._core.trail.ensure(record, self._core.now())
            await self._keep_log(seen)
            final = record.with_end(seen.status.as_dict(), await self._board.files(record))
            path = places.record_path(record.team, record.user, record.id)
            await self._core.store.put(path, final.as_json().encode())
        except StoreError as error:
            log.warning("run not filed: run=%s error=%s", record.id, error)
            return False
        self._count(seen)
        await self._core.audit("ended", final, actor="", more={"phase": seen.status.phase.value})
        ended = seen.status.ended or self._core.now()
        try:
            await self._core.cluster.annotate(obj, {ANNOTATION_FILED: ended.isoformat()})
        except NotFoundError:
            return True
        await self._settle(obj, ended)
        return True

    async def file_schedule(self, seen: Seen, status: Status) -> None:
        """Put the record of a schedule that is removed into the store, if it takes anything."""
        record = seen.record.with_end(status.as_dict(), {})
        path = places.record_path(record.team, record.user, record.id)
        try:
            await self._core.trail.ensure(record, self._core.now())
            await self._core.store.put(path, record.as_json().encode())
        except StoreError as error:
            log.warning("schedule not filed: run=%s error=%s", record.id, error)

    async def _keep_log(self, seen: Seen) -> None:
        text = await self._board.pod_log(seen)
        if text is None:
            return
        most = self._core.settings.bounds.log_size
        path = places.file_path(seen.record.team, seen.record.user, seen.record.id, "log.txt")
        await self._core.store.put(path, text.encode()[-most:])

    def _count(self, seen: Seen) -> None:
        record, status = seen.record, seen.status
        self._core.metrics.ended.labels(record.kind, record.profile, status.phase.value, status.reason).inc()
        log.info(
            "run ended: run=%s user=%s phase=%s reason=%s seconds=%.0f",
            record.id,
            record.user,
            status.phase.value,
            status.reason,
            spent(status, self._core.now()).total_seconds(),
        )

    async def _settle(self, obj: Mapping[str, Any], ended: datetime | None) -> None:
        notes = obj["metadata"].get("annotations") or {}
        gone = ANNOTATION_CANCELED in notes or (ANNOTATION_STUCK in notes and read_end(obj) is None)
        fate = judge_object(ended, canceled=gone, keep=self._core.settings.keep, now=self._core.now())
        if fate is Fate.REMOVE:
            await self._core.cluster.remove(obj)

    async def _check_stuck(self, seen: Seen) -> None:
        """Take the quota back from a run that was admitted and does not get to run."""
        status = seen.status
        workload = seen.around.workload if seen.around else None
        if status.phase is not Phase.STARTING or status.reason in WAITS_THAT_HEAL:
            return
        if workload is None or seen.obj is None or not self._is_late(workload):
            return
        log.warning("run is stuck: run=%s reason=%s", seen.record.id, status.reason)
        await self._core.cluster.annotate(seen.obj, {ANNOTATION_STUCK: status.reason})
        await self._core.cluster.deactivate(workload)

    async def open_gates(self) -> None:
        """Let held runs into their queue as far as the limits allow."""
        catalog, weights = await self._core.catalog()
        count = await self._core.census.current(weights)
        held = list(count.held.items())
        if not held:
            return
        limits = [limits_for(catalog, holding.owner.team) for _, holding in held]
        for name in openable(held, count.holdings, limits):
            obj = await self._core.cluster.find(name)
            if obj is None:
                count.held.pop(name, None)
                continue
            try:
                await self._core.cluster.annotate(obj, {GATE_ANNOTATION: None})
            except KubeError as error:
                log.warning("run stays held: run=%s error=%s", name, error)
                continue
            holding = count.held.pop(name, None) or holding_of(_record(obj), weights, name=name)
            count.runs[name] = holding
            log.info("run let into its queue: run=%s", name)

    async def _records(self) -> list[Record]:
        """Read the records of all runs on the cluster: a schedule may be older than anything is kept."""
        found = (record_from(obj) for obj in await self._core.cluster.runs())
        return [record for record in found if record is not None]

    async def clean(self) -> None:
        """Remove what belongs to nothing any more, on the cluster and in the store."""
        now, core = self._core.now(), self._core
        for one in await core.cluster.loose():
            metadata = one["metadata"]
            owner = await core.cluster.find(metadata["labels"][LABEL_JOB])
            if owner is not None:
                await core.cluster.give(one["kind"], metadata["name"], owner)
            elif is_orphan(read_time(metadata.get("creationTimestamp")), now=now):
                await core.cluster.drop(one)
        needed = {place for record in await self._records() for place in places.needed_by(record)}
        newest: dict[str, datetime] = {}
        files: dict[str, list[str]] = defaultdict(list)
        for file in await core.store.list(""):
            group = places.group_of(file.path)
            files[group].append(file.path)
            newest[group] = max(newest.get(group, file.modified), file.modified)
        for group, changed in newest.items():
            if group in needed or group.startswith(places.AUDIT):
                continue
            if is_over(changed, keep=core.settings.keep, now=now):
                await core.store.delete(files[group])


def _admitted_at(workload: Mapping[str, Any] | None) -> datetime | None:
    conditions = ((workload or {}).get("status") or {}).get("conditions") or ()
    return next(
        (
            read_time(one.get("lastTransitionTime"))
            for one in conditions
            if one.get("type") == "Admitted" and one.get("status") == "True"
        ),
        None,
    )


def _record(obj: Mapping[str, Any]) -> Record:
    record = record_from(obj)
    assert record is not None  # noqa: S101 - held runs were counted by their record
    return record
