"""Everything that takes room at this moment: users' servers, and runs that have not ended.

Read at most every few seconds however many ask; what was just submitted is added at once.

Shell: talks to the Kubernetes API, reads the clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from hub_ext.errors import BadValueError
from hub_ext.quota.demand import COMPONENT_LABEL, SINGLEUSER, Weights, observed_holding
from hub_ext.quota.usage import Holding, Owner, server_key
from services.kube import Kube, api_path

from .cluster import Cluster
from .ids import ANNOTATION_CANCELED, ANNOTATION_RECORD, ANNOTATION_STUCK
from .limits import GATE, GATE_ANNOTATION
from .record import Record, asked_by, parse_record
from .status import read_end

FRESH: Final = 3.0
"""Seconds that a census is good for."""


@dataclass(slots=True)
class Count:
    """One census."""

    servers: list[Holding] = field(default_factory=list)
    runs: dict[str, Holding] = field(default_factory=dict)
    """What runs take that are queued or run, by name."""
    held: dict[str, Holding] = field(default_factory=dict)
    """What runs would take that a limit holds back, by name, oldest first."""
    owners: dict[str, str] = field(default_factory=dict)
    """User of each run that has not ended, held ones included, and of each schedule, by its name."""

    @property
    def holdings(self) -> list[Holding]:
        return [*self.servers, *self.runs.values()]

    def active(self, user: str) -> int:
        """Count what a user has that has not ended."""
        return sum(1 for owner in self.owners.values() if owner == user)

    def add(self, name: str, holding: Holding, *, held: bool) -> None:
        """Count a run."""
        self.owners[name] = holding.owner.user
        (self.held if held else self.runs)[name] = holding


class Census:
    """The latest census, taken anew when it is old."""

    def __init__(self, kube: Kube, cluster: Cluster, server_namespaces: tuple[str, ...]) -> None:
        self._kube = kube
        self._cluster = cluster
        self._namespaces = server_namespaces
        self._count = Count()
        self._taken = float("-inf")
        self._lock = asyncio.Lock()

    async def current(self, weights: Weights) -> Count:
        """Give a census that is a few seconds old at most."""
        async with self._lock:
            if time.monotonic() - self._taken > FRESH:
                self._count = await self._take(weights)
                self._taken = time.monotonic()
            return self._count

    async def _take(self, weights: Weights) -> Count:
        count = Count()
        now = datetime.now(UTC)
        selector = f"{COMPONENT_LABEL}={SINGLEUSER}"
        for namespace in self._namespaces:
            for pod in await self._kube.list(
                api_path("v1", "pods", namespace=namespace), labelSelector=selector
            ):
                holding = observed_holding(pod, weights, now)
                if holding is not None and holding.owner.user:
                    count.servers.append(holding)
        for obj in sorted(await self._cluster.runs(), key=lambda one: one["metadata"]["creationTimestamp"]):
            if obj["kind"] == "CronJob" and (record := _record(obj)) is not None:
                count.owners[record.id] = record.user
            elif (holding := holding_of_run(obj, weights)) is not None:
                count.add(obj["metadata"]["name"], holding, held=is_held(obj))
        return count


def holding_of_run(obj: Mapping[str, Any], weights: Weights) -> Holding | None:
    """Say what a run takes and who is charged; None for one that has ended, or a schedule as such."""
    notes = obj["metadata"].get("annotations") or {}
    over = ANNOTATION_CANCELED in notes or ANNOTATION_STUCK in notes or read_end(obj) is not None
    if over or obj["kind"] == "CronJob":
        return None
    record = _record(obj)
    return holding_of(record, weights, name=obj["metadata"]["name"]) if record is not None else None


def _record(obj: Mapping[str, Any]) -> Record | None:
    """Read the record; None for what this service did not make: who put it there is no user of the hub."""
    try:
        return parse_record((obj["metadata"].get("annotations") or {}).get(ANNOTATION_RECORD, ""))
    except BadValueError:
        return None


def holding_of(record: Record, weights: Weights, *, name: str = "") -> Holding:
    """Say what a run of this record takes."""
    one = asked_by(record)
    worth = weights.worth(one) / record.nodes
    return Holding(
        key=f"run:{name or record.id}",
        owner=Owner(user=record.user, team=record.team),
        taken=asked_by(record, worth),
    )


def is_held(obj: Mapping[str, Any]) -> bool:
    """Say whether a limit holds a run back."""
    notes = obj["metadata"].get("annotations") or {}
    return GATE in notes.get(GATE_ANNOTATION, "").split(",")


def without_server(
    holdings: list[Holding], namespaces: tuple[str, ...], user: str, server: str
) -> list[Holding]:
    """Leave out a server that goes when the run is submitted."""
    keys = {server_key(namespace, user, server) for namespace in namespaces}
    return [one for one in holdings if one.key not in keys]
