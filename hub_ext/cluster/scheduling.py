"""Waits for a node: what the scheduler and the autoscalers say, in words.

Sources: kube-scheduler plugins (`ErrReason…`) 1.32 to 1.36, cluster-autoscaler and Karpenter events. A
message lists, for each node, the first thing that kept the pod away.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from ..quota.words import too_little
from . import autoscaler
from .events import Event
from .nature import wait
from .pods import Pod
from .texts import inside, span
from .waits import Around, Wait, WaitReason
from .zones import are_apart, zones_text

PATIENCE: Final = timedelta(seconds=30)
"""Something that is missing right after it was created may only not be visible yet."""

_SCALING: Final = frozenset({"TriggeredScaleUp", "Nominated"})
"""Cluster-autoscaler and Karpenter."""
_NOT_SCALING: Final = frozenset({"NotTriggerScaleUp", "FailedScaleUp"})
_FAILED: Final = frozenset({"FailedScheduling"})
_CLAIM: Final = frozenset({"FailedResourceClaimCreation"})
_CLAIM_MISSING: Final = re.compile(r"persistentvolumeclaim \"(?P<claim>[^\"]+)\" not found")
_CLAIM_BEYOND: Final = re.compile(
    r"PodResourceClaim \S+: (?:failed to )?create ResourceClaim ?\S*: "
    r"[a-z0-9.]+ \"[^\"]*\" is forbidden: exceeded quota: "
)
"""The controller for claims passes on what the API server says; a webhook's words begin otherwise."""
_UNBOUND: Final = re.compile(r"unbound immediate PersistentVolumeClaims|binding volumes")


class Kind(StrEnum):
    """What kept a pod away from nodes."""

    INSUFFICIENT = "insufficient"
    TAINT = "taint"
    SELECTOR = "selector"
    ZONE = "zone"
    CORDONED = "cordoned"
    PODS = "pods"
    VOLUME_LIMIT = "volume-limit"
    OTHER = "other"


_KINDS: Final = (
    (re.compile(r"^Insufficient (?P<what>\S+)$"), Kind.INSUFFICIENT),
    (re.compile(r"^Too many pods$"), Kind.PODS),
    (re.compile(r"^node\(s\) had (?:an? )?(?:untolerated )?taints?\b"), Kind.TAINT),
    (re.compile(r"^node\(s\) didn't match Pod's node affinity/selector$"), Kind.SELECTOR),
    (
        re.compile(
            r"^node\(s\) (?:had volume node affinity conflict|had no available volume zone|"
            r"didn't match PersistentVolume's node affinity)$"
        ),
        Kind.ZONE,
    ),
    (re.compile(r"^node\(s\) were unschedulable$"), Kind.CORDONED),
    (re.compile(r"^node\(s\) exceed max volume count$"), Kind.VOLUME_LIMIT),
)
"""Whole texts of plugins, which name taints, resources and claims as people called them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What keeps a pod away from some nodes."""

    kind: Kind
    nodes: int
    what: str
    """The resource that is short, else the scheduler's words."""


def obstacles(message: str) -> tuple[Obstacle, ...]:
    """Read ``0/4 nodes are available: 1 node(s) had …, 3 Insufficient nvidia.com/gpu. preemption: …``.

    Only the first sentence is about nodes; since 1.34 more than one may follow.
    """
    body = re.sub(r"^.*?nodes?(?: are| is)? available: ", "", message, count=1).partition(". ")[0]
    found = []
    for part in re.split(r", (?=\d+ )", body.strip().rstrip(".")):
        match = re.match(r"(?P<nodes>\d+) (?P<words>.+)", part.strip())
        if match:
            found.append(_obstacle(int(match["nodes"]), match["words"].rstrip(".")))
    return tuple(found)


def _obstacle(nodes: int, words: str) -> Obstacle:
    for pattern, kind in _KINDS:
        if match := pattern.search(words):
            return Obstacle(kind=kind, nodes=nodes, what=match.groupdict().get("what") or words)
    return Obstacle(kind=Kind.OTHER, nodes=nodes, what=words)


def has_failed(events: Iterable[Event]) -> bool:
    """Say whether the scheduler has found no node, so that it matters where there might be one."""
    return any(one.reason in _FAILED for one in events)


def judge_scheduling(pod: Pod, events: Sequence[Event], around: Around) -> Wait | None:
    """Say why a pod has no node yet; None once it has one."""
    if pod.node:
        return None
    failed, scaling = _last_failure(pod, events), _latest(events, _SCALING)
    if claim := _latest(events, _CLAIM):
        full = _CLAIM_BEYOND.match(claim.message) is not None
        why = inside("the quota of the namespace is used up") if full else ""
        return wait(WaitReason.CLAIM_REFUSED, why, fatal=not full, seen=claim)
    found = obstacles(failed.message) if failed else ()
    return (
        _judge_volumes(found, failed, around)
        or (None if scaling else _judge_never(pod, found, failed, around))
        or _judge_scaling(scaling, _latest(events, _NOT_SCALING), around)
        or _judge_room(pod, found, failed)
    )


def _last_failure(pod: Pod, events: Sequence[Event]) -> Event | None:
    """Give the scheduler's last failure with its present cause.

    The scheduler's events become a series that keeps the words of its first (client-go, `tools/events`), such
    as those of a claim that was not bound yet; the condition of the pod is written anew each time.
    """
    failed, placed = _latest(events, _FAILED), pod.condition("PodScheduled")
    if failed is None or placed is None or placed.reason != "Unschedulable":
        return failed
    return replace(failed, message=placed.message or failed.message)


def _judge_scaling(scaling: Event | None, refused: Event | None, around: Around) -> Wait | None:
    if scaling is not None and (refused is None or refused.last < scaling.last):
        usual = around.usual.scale_up
        return wait(WaitReason.SCALING_UP, f", usually {span(usual)}" if usual else "", seen=scaling)
    if refused is not None:
        return wait(WaitReason.NO_SCALE_UP, inside(autoscaler.in_words(refused.message)), seen=refused)
    return None


def _judge_room(pod: Pod, found: Sequence[Obstacle], failed: Event | None) -> Wait:
    if failed is None:
        return wait(WaitReason.SCHEDULING, seen=pod.created)
    return wait(WaitReason.NO_ROOM, _room(found), seen=failed)


def _judge_volumes(found: Sequence[Obstacle], failed: Event | None, around: Around) -> Wait | None:
    if failed is None:
        return None
    if match := _CLAIM_MISSING.search(failed.message):
        old = around.now - failed.first >= PATIENCE
        return wait(WaitReason.VOLUME_MISSING, f": {match['claim']}", fatal=old, seen=failed)
    if _UNBOUND.search(failed.message):
        return wait(WaitReason.VOLUME_UNBOUND, seen=failed)
    if not any(one.kind is Kind.ZONE for one in found):
        return None
    place = around.place
    apart = are_apart(place.home_zones, place.zones)
    where = f". {zones_text(place.home_zones, place.zones)}" if apart else ""
    # Nodes that are only full may be in the right zone: then it is not over yet.
    may_pass = any(one.kind in {Kind.INSUFFICIENT, Kind.PODS, Kind.CORDONED} for one in found)
    return wait(WaitReason.ZONE_CONFLICT, where, fatal=apart or not may_pass, seen=failed)


def _judge_never(pod: Pod, found: Sequence[Obstacle], failed: Event | None, around: Around) -> Wait | None:
    place = around.place
    if place.scales or not found or failed is None:
        return None
    if place.offering == 0 and place.nodes:
        return _too_large(found, failed, around)
    if not all(one.kind in {Kind.TAINT, Kind.SELECTOR, Kind.CORDONED} for one in found):
        return None
    if place.nodes == 0:
        return wait(WaitReason.NO_MATCHING_NODE, _labels(pod, found), fatal=True, seen=failed)
    kinds = {one.kind for one in found}
    if pod.selector and Kind.SELECTOR in kinds and Kind.CORDONED not in kinds:
        # The pool has nodes, yet none has its labels and those that the hub adds for all pods.
        fatal = bool(place.nodes) and around.now - failed.first >= PATIENCE
        return wait(WaitReason.NO_MATCHING_NODE, _labels(pod, found), fatal=fatal, seen=failed)
    return None


def _too_large(found: Sequence[Obstacle], failed: Event, around: Around) -> Wait:
    faulty = around.place.faulty
    if not faulty:
        return wait(WaitReason.TOO_LARGE, inside(_short(found)), fatal=True, seen=failed)
    # A device plugin that starts anew gives out nothing for a moment either.
    old = around.now - failed.first >= PATIENCE
    return wait(WaitReason.DEVICE_UNHEALTHY, inside(", ".join(faulty[:3])), fatal=old, seen=failed)


def _labels(pod: Pod, found: Sequence[Obstacle]) -> str:
    if not any(one.kind is Kind.SELECTOR for one in found):
        return ""
    labels = " and ".join(f"{key}={value}" for key, value in pod.selector)
    return inside(f"it needs {labels}" if labels else "")


def _short(found: Sequence[Obstacle]) -> str:
    return too_little(one.what for one in found if one.kind is Kind.INSUFFICIENT)


def _room(found: Sequence[Obstacle]) -> str:
    short = _short(found)
    if short:
        nodes = sum(one.nodes for one in found if one.kind is Kind.INSUFFICIENT)
        return f"{short} on {nodes} {'node' if nodes == 1 else 'nodes'}"
    if any(one.kind is Kind.PODS for one in found):
        return "the nodes hold as many pods as they may"
    if any(one.kind is Kind.CORDONED for one in found):
        return "the nodes are closed for maintenance"
    return "none takes it at the moment"


def _latest(events: Sequence[Event], reasons: frozenset[str]) -> Event | None:
    return next((one for one in reversed(events) if one.reason in reasons), None)
