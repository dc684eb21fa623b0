"""What the cluster has for each kind of workspace, worked out once for all who look.

A page of 100 profiles on 1,000 nodes asks 100,000 questions, and 64 pages are asked for in the same moment.
So the nodes of a pool are kept until a node changes, and an answer for one second.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from ..catalog.model import Pool
from ..names import ImageReference
from ..quota.arithmetic import NOTHING, Resources
from .capacity import UNKNOWN, Availability, Candidates
from .nodes import Node
from .placement import ANYWHERE, Placement
from .prepulled import Prepulled
from .snapshot import Snapshot, of_kubernetes
from .warmth import NOT_SEEN, Warmth, warmth_of
from .zones import zones_of_nodes

FRESH: Final = timedelta(seconds=1)
"""How old an answer may be: less than people notice, and the start itself is checked anew."""

FRESH_IMAGES: Final = timedelta(seconds=10)
"""The same about images: kubelets tell no sooner what they have."""


class Supplies:
    """Answers of late, by pool and what is asked for."""

    def __init__(self, placement: Placement = ANYWHERE) -> None:
        self.placement = placement
        self.prepulled: Prepulled | None = None
        """What the prepuller says is warm; None where there is none, so that the nodes' lists count."""
        self._nodes: object = None
        self._counted: dict[_Kind, _Counted] = {}
        self._answers: dict[_Kind, tuple[datetime, Availability]] = {}
        self._warmth: dict[tuple[_Kind, ImageReference], Warmth] = {}
        self._warmth_since: datetime | None = None

    def of(self, snapshot: Snapshot, asked: Resources, pool: Pool | None, pool_name: str) -> Availability:
        """Say how many more workspaces of a kind could be placed, as of at most a second ago."""
        kind = (pool_name, asked)
        known = self._answers.get(kind)
        if known is not None and snapshot.taken - known[0] < FRESH:
            return known[1]
        if snapshot.nodes is None:
            return UNKNOWN
        counted = self._counted_for(snapshot, pool, kind)
        free = counted.count(snapshot.used) - snapshot.waiting_for(pool_name)
        answer = snapshot.supply(asked, pool, counted.where, free)
        self._answers[kind] = (snapshot.taken, answer)
        return answer

    def warmth(
        self, snapshot: Snapshot, asked: Resources, pool: Pool | None, pool_name: str, image: ImageReference
    ) -> Warmth:
        """Say on how many of the nodes with room an image is, as of a few seconds ago."""
        kind = (pool_name, asked)
        if self._warmth_since is None or snapshot.taken - self._warmth_since >= FRESH_IMAGES:
            # All at once: users may name images of their own, and none of them may stay for good.
            self._warmth, self._warmth_since = {}, snapshot.taken
        if (known := self._warmth.get((kind, image))) is not None:
            return known
        if snapshot.nodes is None:
            return NOT_SEEN
        nodes = self._counted_for(snapshot, pool, kind).with_room(snapshot.used)
        told = self.prepulled
        answer = warmth_of(image, nodes) if told is None else told.warmth(image, pool_name, nodes)
        self._warmth[kind, image] = answer
        return answer

    def zones(
        self, snapshot: Snapshot, asked: Resources, pool: Pool | None, pool_name: str
    ) -> frozenset[str]:
        """Give the zones of a pool's nodes; empty if not all of them name theirs."""
        return self._counted_for(snapshot, pool, (pool_name, asked)).zones

    def _counted_for(self, snapshot: Snapshot, pool: Pool | None, kind: _Kind) -> _Counted:
        if snapshot.nodes is not self._nodes:
            self._nodes, self._counted = snapshot.nodes, {}
        if kind not in self._counted:
            asked = kind[1]
            where = snapshot.candidates(asked, self.placement.of(pool))
            self._counted[kind] = _Counted(of_kubernetes(asked), where)
        return self._counted[kind]


_Kind = tuple[str, Resources]


class _Counted:
    """How often one kind of workspace goes into each node; counted again where the use of a node changes."""

    def __init__(self, asked: Resources, where: Candidates) -> None:
        self.where = where
        self.zones = zones_of_nodes(where.nodes)
        self._asked = asked
        self._counts: dict[str, tuple[Resources, int]] = {}

    def count(self, used: Mapping[str, Resources]) -> int:
        """Add up over all nodes."""
        total = 0
        for node in self.where.offering:
            taken = used.get(node.name, NOTHING)
            known = self._counts.get(node.name)
            if known is None or known[0] is not taken:
                known = (taken, self._asked.goes_into(node.usable, taken))
                self._counts[node.name] = known
            total += known[1]
        return total

    def with_room(self, used: Mapping[str, Resources]) -> tuple[Node, ...]:
        """Give the nodes that took one more when they were counted last."""
        if not self._counts:
            self.count(used)
        return tuple(node for node in self.where.offering if self._counts[node.name][1])
