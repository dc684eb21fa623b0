"""Amounts of resources, and what one pod takes of them.

Units: `cpu` in millicores, `memory` and `ephemeral-storage` in bytes, everything else in whole pieces;
`gpuEquivalents` in cards, as an exact fraction.

Sources: Kubernetes `PodRequests` (k8s.io/component-helpers/resource) for sidecars, init containers, pod-level
resources and overhead; `QuotaV1Pod` (k8s.io/kubernetes/pkg/quota/v1/evaluator/core) for which pods count.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final, Self

from ..units import parse_quantity

Amount = int | Fraction

CPU: Final = "cpu"
MEMORY: Final = "memory"
SERVERS: Final = "servers"
"""Not a resource of Kubernetes: workspaces that run at once."""
GPU_EQUIVALENTS: Final = "gpuEquivalents"
"""Not a resource of Kubernetes: whole cards that all GPUs, slices and shares together are worth."""

FINISHED_PHASES: Final = frozenset({"Succeeded", "Failed"})
_POD_LEVEL: Final = (CPU, MEMORY)
"""What `spec.resources` of a pod may set; hugepages are not used by workspaces."""


@lru_cache(maxsize=8192)
def read_amount(name: str, quantity: str | int | float) -> int:
    """Read a quantity in the unit of its resource, rounded up as Kubernetes does.

    Raises
    ------
    QuantityError
        Not a quantity.
    """
    value = parse_quantity(quantity)
    return ceil(value * 1000) if is_cpu(name) else ceil(value)


def is_cpu(name: str) -> bool:
    """Say whether amounts of `name` are millicores; quota keys such as `limits.cpu` are included."""
    return name.rpartition(".")[2] == CPU


class Resources:
    """An immutable amount per resource name; a name that is not there is zero."""

    __slots__ = ("_amounts",)

    def __init__(self, amounts: Mapping[str, Amount] | None = None) -> None:
        self._amounts: dict[str, Amount] = {name: n for name, n in (amounts or {}).items() if n}

    @classmethod
    def read(cls, quantities: Mapping[str, str | int | float] | None) -> Self:
        """Read what the Kubernetes API writes: ``{"cpu": "500m", "nvidia.com/gpu": "1"}``.

        Raises
        ------
        QuantityError
            A value is not a quantity.
        """
        return cls({name: read_amount(name, text) for name, text in (quantities or {}).items()})

    def __getitem__(self, name: str) -> Amount:
        return self._amounts.get(name, 0)

    def __contains__(self, name: object) -> bool:
        return name in self._amounts

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def items(self) -> Iterable[tuple[str, Amount]]:
        return self._amounts.items()

    def __add__(self, other: Resources) -> Resources:
        if not other._amounts:
            return self
        total = dict(self._amounts)
        for name, amount in other._amounts.items():
            total[name] = total.get(name, 0) + amount
        return Resources(total)

    def __sub__(self, other: Resources) -> Resources:
        return Resources({name: self[name] - other[name] for name in {**self._amounts, **other._amounts}})

    def peak(self, other: Resources) -> Resources:
        """Give the larger amount of each resource."""
        return Resources({name: max(self[name], other[name]) for name in {**self._amounts, **other._amounts}})

    def goes_into(self, whole: Resources, taken: Resources) -> int:
        """Count how often this goes into what is left of `whole`."""
        counts = []
        for name, amount in self._amounts.items():
            left = whole._amounts.get(name, 0) - taken._amounts.get(name, 0)
            if left < amount:
                return 0
            counts.append(left // amount)
        return int(min(counts, default=0))

    def override(self, other: Resources, names: Iterable[str]) -> Resources:
        """Give this with the amounts of `names` taken from `other` where it has them."""
        taken = {name: other[name] for name in names if name in other}
        return Resources({**self._amounts, **taken})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self._amounts == other._amounts

    def __hash__(self) -> int:
        return hash(frozenset(self._amounts.items()))

    def __bool__(self) -> bool:
        return bool(self._amounts)

    def __repr__(self) -> str:
        return f"Resources({ {name: str(n) for name, n in sorted(self._amounts.items())} })"


NOTHING: Final = Resources()


def total(parts: Iterable[Resources]) -> Resources:
    """Add up."""
    sums: dict[str, Amount] = {}
    for part in parts:
        for name, amount in part.items():
            sums[name] = sums.get(name, 0) + amount
    return Resources(sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """What a pod takes, and which container takes how much of it."""

    requests: Resources
    by_container: Mapping[str, Resources]
    """Init containers that end before the others start take no part in the sum: they only lift the total."""

    def takers(self, name: str) -> tuple[str, ...]:
        """Name the containers that ask for a resource, in the order of the pod."""
        return tuple(container for container, taken in self.by_container.items() if name in taken)


def pod_request(spec: Mapping[str, Any]) -> PodRequest:
    """Work out the effective request of a pod: the larger of its init phase and its running phase.

    Parameters
    ----------
    spec
        `spec` of a Pod in API spelling, before or after the API server set defaults.

    Raises
    ------
    QuantityError
        A request is not a quantity.
    """
    by_container: dict[str, Resources] = {}
    running = NOTHING
    for container in spec.get("containers") or ():
        asked = container_request(container)
        by_container[container.get("name", "")] = asked
        running += asked
    sidecars, init_peak = NOTHING, NOTHING
    for container in spec.get("initContainers") or ():
        asked = container_request(container)
        by_container[container.get("name", "")] = asked
        if container.get("restartPolicy") == "Always":
            running += asked
            sidecars += asked
            init_peak = init_peak.peak(sidecars)
        else:
            init_peak = init_peak.peak(asked + sidecars)
    requests = running.peak(init_peak)
    requests = requests.override(container_request(spec), _POD_LEVEL) + Resources.read(spec.get("overhead"))
    return PodRequest(requests=requests, by_container=by_container)


def container_request(container: Mapping[str, Any]) -> Resources:
    """Read the request of a container; where only a limit is set, the API server takes that."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    return Resources.read({**limits, **requests})


def counts(pod: Mapping[str, Any], now: datetime) -> bool:
    """Say whether a pod takes room in a quota at `now` (aware).

    Pending pods do, finished ones do not, and one that is being deleted does until its grace period has
    passed: after that Kubernetes no longer waits for a node that may be gone.
    """
    if (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
        return False
    metadata = pod.get("metadata") or {}
    return not is_overdue(metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds"), now)


def is_overdue(deleted_at: str | datetime | None, grace_seconds: int | None, now: datetime) -> bool:
    """Say whether a deletion has outlasted its grace period."""
    if deleted_at is None or grace_seconds is None:
        return False
    moment = datetime.fromisoformat(deleted_at) if isinstance(deleted_at, str) else deleted_at
    return now > moment + timedelta(seconds=grace_seconds)
