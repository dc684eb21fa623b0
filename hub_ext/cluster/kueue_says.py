"""Kueue's sentences about a workload that waits, read into one shape.

A sentence names queues, flavors and resources as admins called them, and often has several causes: each
flavor has its own, and one flavor that fits is enough, as Kueue itself counts
(`flavorassigner.resolveNoFitReason`). So each cause is read from its beginning, and the mildest of a set of
pods decides.

Sources: Kueue v0.19.2, `pkg/scheduler` (`scheduler.go`, `flavorassigner`), `pkg/cache/scheduler`
(`tas_flavor_snapshot.go`), `pkg/controller/core/workload_controller.go`.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """Why a workload is not let in."""

    PREEMPTING = "preempting"
    """Others are being ended for it."""
    TOPOLOGY = "topology"
    """No nodes that are close enough to each other have room."""
    FULL = "full"
    """A flavor that could hold it is in use."""
    TOO_SMALL = "too-small"
    """No flavor can ever hold it."""
    NO_FLAVOR = "no-flavor"
    """No flavor is meant for such pods."""
    UNCOUNTED = "uncounted"
    """The queue does not count what it asks for."""
    STOPPED = "stopped"
    MISSING = "missing"
    """A queue of that name does not exist."""


_SEVERITY: Final = tuple(Cause)
"""From what passes soonest; of several sets of pods the gravest cause counts, since all are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What is short in one flavor; quantities as Kubernetes writes them."""

    resource: str
    flavor: str = ""
    more: str = ""
    """How much more would have to be free; empty if that would not do."""
    most: str = ""
    """How much the flavor has in all, where that is too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """A sentence of Kueue's."""

    cause: Cause | None = None
    """None for a sentence that is not known."""
    lacks: tuple[Lack, ...] = ()
    """Those behind the cause."""


_QUEUE: Final = re.compile(
    r"(?:Local|Cluster)Queue \S+ (?:(?P<stopped>is (?:inactive|stopped))|"
    r"doesn't exist|not found|is terminating or missing)$"
)
_SET: Final = re.compile(r"couldn't assign flavors(?: to pod set \S+)?: ")
_OVERLAPPING: Final = "Workload has overlapping preemption targets "
_PREEMPTING: Final = re.compile(r"\. Pending the preemption of \d+ workload\(s\)$")
_REASONS: Final = re.compile(
    r"(?:^|, )(?:"
    r"insufficient unused quota for (?P<full>\S+) in flavor (?P<in_full>[^,\s]+), (?P<more>\S+) more needed|"
    r"insufficient quota for (?P<small>\S+) in flavor (?P<in_small>[^,\s]+), [^>]*> maximum capacity "
    r"\((?P<most>[^)]*)\)|"
    r"resource (?P<uncounted>\S+) unavailable in ClusterQueue|"
    r"(?P<no_flavor>untolerated taint .+? in flavor \S|flavor \S+ (?:doesn't match node affinity|not found)|"
    r"Flavor \"[^\"]*\" (?:does not support|supports only) TopologyAwareScheduling)|"
    r"(?P<topology>topology \"[^\"]*\" (?:doesn't allow|allows) to fit|no requested topology level)"
    r")"
)


def read_saying(message: str) -> Saying:
    """Read the message of the condition `QuotaReserved`."""
    if match := _QUEUE.match(message):
        return Saying(cause=Cause.STOPPED if match["stopped"] else Cause.MISSING)
    if (match := _PREEMPTING.search(message)) or message.startswith(_OVERLAPPING):
        before = read_saying(message[: match.start()]) if match else Saying()
        return Saying(cause=Cause.PREEMPTING, lacks=before.lacks)
    found = [one for part in _SET.split(message) if (one := _of_set(part)).cause is not None]
    return max(found, key=lambda one: _SEVERITY.index(one.cause or Cause.PREEMPTING), default=Saying())


def _of_set(reasons: str) -> Saying:
    """Judge one set of pods: it needs all its resources, and one flavor for each that has them."""
    found = tuple(_causes(reasons))
    # A flavor that is too small in one resource is none that could be waited for.
    small = {lack.flavor for cause, lack in found if cause is Cause.TOO_SMALL}
    left = [(cause, lack) for cause, lack in found if cause is not Cause.FULL or lack.flavor not in small]
    causes = {cause for cause, _ in left}
    mildest = next((one for one in _SEVERITY if one in causes), None)
    cause = Cause.UNCOUNTED if Cause.UNCOUNTED in causes else mildest
    return Saying(cause=cause, lacks=tuple(lack for one, lack in left if one is cause and lack.resource))


def _causes(reasons: str) -> Iterator[tuple[Cause, Lack]]:
    for match in _REASONS.finditer(reasons):
        if match["full"]:
            yield Cause.FULL, Lack(resource=match["full"], flavor=match["in_full"], more=match["more"])
        elif match["small"]:
            yield Cause.TOO_SMALL, Lack(resource=match["small"], flavor=match["in_small"], most=match["most"])
        elif match["uncounted"]:
            yield Cause.UNCOUNTED, Lack(resource=match["uncounted"])
        else:
            yield Cause.NO_FLAVOR if match["no_flavor"] else Cause.TOPOLOGY, Lack(resource="")
