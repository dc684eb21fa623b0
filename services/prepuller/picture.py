"""What is known of every image on every node where it belongs.

Pure: no clock, no network; `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from .facts import Machine, canonical
from .places import Layout
from .pods import PullPod, Step
from .reasons import Evidence, Reason, State
from .settings import Limits
from .troubles import Troubles
from .wants import Desired

SETTLE: Final = timedelta(minutes=5)
"""Until a node's list must show what was fetched: the kubelet refreshes it each half minute and reports it at
the latest with the next full status."""

Pair = tuple[str, str]
"""Want and node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is known of one image on one node."""

    state: State
    evidence: Evidence
    since: datetime | None = None
    """When the evidence is from; None for a node's list, which is as old as its last status."""
    reason: Reason | None = None
    detail: str = ""
    pinned: bool = False


_LISTED: Final = Sight(state=State.PULLED, evidence=Evidence.LISTED)
_FOR_OTHERS: Final = Sight(state=State.UNKNOWN, evidence=Evidence.LISTED_FOR_OTHERS)
_NOT_LISTED: Final = Sight(state=State.ABSENT, evidence=Evidence.NOT_LISTED)
_CUT: Final = Sight(state=State.UNKNOWN, evidence=Evidence.LIST_CUT)
_NO_LIST: Final = Sight(state=State.UNKNOWN, evidence=Evidence.NO_LIST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All of it at one moment."""

    at: datetime
    desired: Desired
    layout: Layout
    machines: Mapping[str, Machine]
    pods: tuple[PullPod, ...]
    mine: Mapping[Pair, PullPod] = field(default_factory=dict)
    """The pod of each pair."""
    doubles: tuple[PullPod, ...] = ()
    """Further pods of a pair that has one."""
    sights: Mapping[Pair, Sight] = field(default_factory=dict)
    """Of every pair that is wanted."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes by want, as far as any node tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The cluster as it was watched."""

    machines: Mapping[str, Machine]
    pods: tuple[PullPod, ...] = ()


def look(
    desired: Desired, layout: Layout, seen: Seen, *, troubles: Troubles, limits: Limits, now: datetime
) -> Picture:
    """Put together what nodes and pods tell."""
    machines = seen.machines
    all_pods = tuple(overdue(pod, limits, now) for pod in seen.pods)
    mine, doubles = _by_pair(all_pods)
    sights = {
        pair: _sight(mine.get(pair), machines[pair[1]], desired.wants[pair[0]].image, troubles, pair, now)
        for pair in layout.places
    }
    return Picture(
        at=now,
        desired=desired,
        layout=layout,
        machines=machines,
        pods=all_pods,
        mine=mine,
        doubles=tuple(doubles),
        sights=sights,
        sizes=_sizes(desired, machines, all_pods),
    )


def overdue(pod: PullPod, limits: Limits, now: datetime) -> PullPod:
    """Give up a pod that waits or pulls for too long; its node may not have noticed, or may be silent."""
    if pod.step is Step.WAITING and now - pod.since_here > limits.scheduling_wait:
        return replace(pod, step=Step.FAILED, reason=Reason.NO_ROOM, since=now)
    if pod.step is Step.PULLING and now - pod.since_here > limits.timeout:
        return replace(pod, step=Step.FAILED, reason=Reason.TIMEOUT, since=now)
    return pod


def _by_pair(pods: Iterable[PullPod]) -> tuple[dict[Pair, PullPod], list[PullPod]]:
    mine: dict[Pair, PullPod] = {}
    doubles: list[PullPod] = []
    for pod in pods:
        pair = (pod.want, pod.node)
        if pair in mine:
            doubles.append(pod)
        else:
            mine[pair] = pod
    return mine, doubles


def is_gone(pod: PullPod, machine: Machine | None, now: datetime) -> bool:
    """Say whether an image was removed behind the pin's back.

    The list of a node counts only when it is whole and the image has had the time to get onto it. A pod that
    found the image there although the list never had it proves that the list spells it otherwise.
    """
    return (
        machine is not None
        and pod.step is Step.DONE
        and machine.lists_all
        and canonical(pod.image) not in machine.images
        and (pod.listed or pod.present is not True)
        and now - pod.since_here > SETTLE
    )


def _sight(
    pod: PullPod | None, machine: Machine, image: str, troubles: Troubles, pair: Pair, now: datetime
) -> Sight:
    if pod is not None and pod.step is Step.DONE and not is_gone(pod, machine, now):
        return Sight(state=State.PULLED, evidence=Evidence.POD, since=pod.since, pinned=not pod.ending)
    if pod is not None and pod.step is Step.FAILED:
        return Sight(
            state=State.FAILED, evidence=Evidence.POD, since=pod.since, reason=pod.reason, detail=pod.detail
        )
    if pod is not None and pod.step is not Step.DONE:
        return Sight(state=State.PULLING, evidence=Evidence.POD, since=pod.since, detail=pod.detail)
    if (trouble := troubles.at(*pair)) is not None:
        return Sight(
            state=State.FAILED,
            evidence=Evidence.POD,
            since=trouble.at,
            reason=trouble.reason,
            detail=trouble.detail,
        )
    return listed(machine, image)


def listed(machine: Machine, image: str) -> Sight:
    """Say what a node's own list tells of an image that the prepuller did not fetch there."""
    if canonical(image) in machine.images:
        return _FOR_OTHERS if machine.checks_credentials else _LISTED
    if machine.lists_all:
        return _NOT_LISTED
    return _CUT if machine.has_list else _NO_LIST


def _sizes(desired: Desired, machines: Mapping[str, Machine], pods: Iterable[PullPod]) -> dict[str, int]:
    sizes = {pod.want: pod.size_bytes for pod in pods if pod.size_bytes}
    for key, want in desired.wants.items():
        name = canonical(want.image)
        found = next((size for one in machines.values() if (size := one.images.get(name))), 0)
        if found:
            sizes[key] = found
    return sizes
