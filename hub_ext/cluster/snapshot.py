"""The cluster at one moment, as everything else reads it: one immutable value, shared by all.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

from ..catalog.model import Pool
from ..names import LABEL_POOL
from ..quota.arithmetic import GPU_EQUIVALENTS, NOTHING, SERVERS, Resources
from ..quota.namespace import ResourceQuota
from .capacity import (
    UNKNOWN,
    Availability,
    Candidates,
    available,
    can_scale,
    candidates,
    count_free,
    pool_nodes,
)
from .kinds import Kind
from .nodes import Node
from .pods import Pod
from .waits import Place
from .workloads import Workload
from .zones import zones_of_nodes

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was known at `taken`. What cannot be seen is not the same as what is not there: see `visible`."""

    taken: datetime
    pods: Mapping[tuple[str, str], Pod] = field(default_factory=lambda: _NOTHING)
    """By namespace and name."""
    nodes: Mapping[str, Node] | None = None
    quotas: Mapping[tuple[str, str], ResourceQuota] = field(default_factory=lambda: _NOTHING)
    limit_ranges: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=lambda: _NOTHING)
    workloads: Mapping[str, Workload] = field(default_factory=lambda: _NOTHING)
    """By the uid of the pod or job that they stand for."""
    used: Mapping[str, Resources] = field(default_factory=lambda: _NOTHING)
    """What pods take of each node."""
    unplaced: Mapping[tuple[str, str], Pod] = field(default_factory=lambda: _NOTHING)
    """Pods that wait for a node."""
    visible: frozenset[tuple[Kind, str]] = frozenset()
    """The collections that could be loaded, with their namespace; what is missing is not known."""
    changing_since: Mapping[str, datetime] = field(default_factory=lambda: _NOTHING)
    """Nodes whose MIG layout changes, and since when that was seen."""

    def node_of(self, pod: Pod) -> Node | None:
        """Give the node that a pod was placed on, if it can be seen."""
        return (self.nodes or {}).get(pod.node) if pod.node else None

    def workload_of(self, pod: Pod) -> Workload | None:
        """Give Kueue's view of a pod, if there is one and it can be seen."""
        return self.workloads.get(pod.uid)

    def quotas_of(self, namespace: str) -> tuple[ResourceQuota, ...] | None:
        """Give the quotas of a namespace; None if they cannot be seen."""
        if (Kind.QUOTAS, namespace) not in self.visible:
            return None
        return tuple(quota for (where, _), quota in self.quotas.items() if where == namespace)

    def limit_ranges_of(self, namespace: str) -> tuple[Mapping[str, Any], ...]:
        """Give the limit ranges of a namespace, in API spelling."""
        return tuple(one for (where, _), one in self.limit_ranges.items() if where == namespace)

    def availability(self, asked: Resources, pool: Pool | None, *, pool_name: str = "") -> Availability:
        """Say how many more workspaces that ask for `asked` could be placed now."""
        if self.nodes is None:
            return UNKNOWN
        where = self.candidates(asked, pool)
        free = count_free(of_kubernetes(asked), where, self.used)
        return self.supply(asked, pool, where, free - self.waiting_for(pool_name))

    def supply(self, asked: Resources, pool: Pool | None, where: Candidates, free: int) -> Availability:
        """Say what the cluster has, for a caller who has counted."""
        exact = (Kind.OUTSIDE, "") in self.visible
        plain, scales = of_kubernetes(asked), can_scale(pool, asked)
        unscaled = bool(pool and pool.scale_up) and not scales
        return available(plain, where, free, exact=exact, scales=scales, unscaled=unscaled)

    def candidates(self, asked: Resources, pool: Pool | None) -> Candidates:
        """Give the nodes where a workspace may be placed, whatever is free there."""
        plain = of_kubernetes(asked)
        return candidates(pool_nodes((self.nodes or {}).values(), pool, plain), plain)

    def waiting_for(self, pool_name: str) -> int:
        """Count the pods of a pool that have no node yet and are not held back by a queue."""
        return sum(
            1
            for pod in self.unplaced.values()
            if pool_name and pod.labels.get(LABEL_POOL) == pool_name and not pod.gates
        )

    def place(
        self, asked: Resources, pool: Pool | None, *, home_zones: frozenset[str] = frozenset()
    ) -> Place:
        """Say where a workspace may run, for explaining why it does not."""
        if self.nodes is None:
            return Place(scales=can_scale(pool, asked), home_zones=home_zones)
        where = self.candidates(asked, pool)
        return Place(
            nodes=len(where.nodes),
            offering=len(where.offering),
            faulty=tuple(
                node.name
                for node in where.nodes
                if node.withheld and of_kubernetes(asked).goes_into(node.usable + node.withheld, NOTHING)
            ),
            scales=can_scale(pool, asked),
            zones=zones_of_nodes(where.nodes),
            home_zones=home_zones,
        )


def of_kubernetes(asked: Resources) -> Resources:
    """Leave out what only limits know: servers and GPU equivalents."""
    return Resources({name: n for name, n in asked.items() if name not in {SERVERS, GPU_EQUIVALENTS}})


def frozen(mapping: Mapping[_Key, _Value]) -> Mapping[_Key, _Value]:
    """Give a read-only copy."""
    return MappingProxyType(dict(mapping))
