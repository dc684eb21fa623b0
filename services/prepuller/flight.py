"""Pulls that are under way, and whether there is room for one more.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from .facts import registry_of
from .picture import Picture
from .pods import PullPod, Step
from .reasons import Blame, Hold
from .settings import Limits
from .troubles import Key
from .wants import Want


class Flight:
    """What may be fetching at this moment, plus what was decided since."""

    def __init__(self, picture: Picture, limits: Limits) -> None:
        self._limits, self._pools_of = limits, picture.layout.pools_of
        self.total = 0
        self._by_registry: Counter[str] = Counter()
        self._by_pool: Counter[str] = Counter()
        self._shows: Counter[Key] = Counter()
        """Pulls that will show whether something works."""
        self._going_well: set[str] = set()
        self._nodes: set[str] = set()
        self._pins = len(picture.pods)
        for pod in picture.pods:
            if pod.in_flight:
                self._take(pod, picture)

    def _take(self, pod: PullPod, picture: Picture) -> None:
        """Count a pod that may be fetching. Its node is busy; what was lost with its node burdens no other.

        One that was given up, or whose node is silent, shows nothing about its image any more.
        """
        machine = picture.machines.get(pod.node)
        alive = machine is not None and machine.node.ready is True
        self._nodes.add(pod.node)
        if machine is None or (not alive and picture.at - pod.created > self._limits.timeout):
            return
        registry = registry_of(pod.image)
        self._count(pod.node, registry)
        if alive and not pod.ending:
            self._show(pod.want, registry)
            if self._goes_well(pod, picture.at):
                self._going_well.add(pod.want)

    def _goes_well(self, pod: PullPod, now: datetime) -> bool:
        if pod.step is not Step.PULLING or pod.begun is None:
            return False
        return now - max(pod.begun, pod.since_here) >= self._limits.canary_wait

    def _show(self, want: str, registry: str) -> None:
        self._shows.update([(Blame.ALL, ""), (Blame.REGISTRY, registry), (Blame.IMAGE, want)])

    def begin(self, want: Want, node: str) -> None:
        """Count one more pull."""
        self._pins += 1
        self._count(node, want.registry)
        self._show(want.id, want.registry)

    def _count(self, node: str, registry: str) -> None:
        """Count a pull in everything that it burdens: a node may be part of several pools."""
        self.total += 1
        self._by_registry[registry] += 1
        self._by_pool.update(self._pools_of.get(node, ()))
        self._nodes.add(node)

    def full(self, want: Want, node: str) -> Hold | None:
        """Say which limit one more pull would break."""
        limits, registry = self._limits, want.registry
        if self.total >= limits.total:
            return Hold.TOTAL_LIMIT
        if node in self._nodes:
            return Hold.NODE_BUSY
        if self._by_registry[registry] >= limits.of_registry(registry):
            return Hold.REGISTRY_LIMIT
        if any(self._by_pool[pool] >= limits.per_pool for pool in self._pools_of.get(node, ())):
            return Hold.POOL_LIMIT
        return Hold.PINS_FULL if self._pins >= limits.pins else None

    def tries(self, want: str) -> bool:
        """Say whether an image is being fetched anywhere where that shows something."""
        return self._shows[Blame.IMAGE, want] > 0

    def proves_itself(self, want: str) -> bool:
        """Say whether an image is being fetched for so long that the others need not wait for its end."""
        return want in self._going_well

    def depends(self, key: Key) -> bool:
        """Say whether a pull is under way that shows whether something works again."""
        blame, name = key
        match blame:
            case Blame.ALL | Blame.REGISTRY | Blame.IMAGE:
                return self._shows[key] > 0
            case Blame.PLATFORM:
                return self.tries(name.rpartition("/")[0])
            case Blame.NODE:
                return name in self._nodes
            case Blame.PAIR:
                return False
