"""Waits before the scheduler has a say: gates, and Kueue's queues.

Sources: Kueue v0.19 (`TerminationTarget` on pods, `pkg/scheduler/preemption`); Kubernetes 1.32 to 1.36
(`DisruptionTarget`: the scheduler's `framework/preemption`, `controller/{tainteviction,podgc}`, the kubelet's
`preemption` and `eviction`).

Pure: no clock, no network.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from ..errors import QuantityError
from ..quota import words
from ..quota.arithmetic import read_amount
from .kueue_says import Cause, Lack, read_saying
from .nature import wait
from .pods import KUEUE_GATE, QUEUE_LABEL, Pod
from .texts import inside
from .waits import Wait, WaitReason
from .workloads import Workload

_PREEMPTED: Final = frozenset({"PreemptionByScheduler", "WorkloadEvictedDueToPreempted"})
_BY_KUEUE: Final = "Preempted to accommodate "
"""How its message begins, where its reason says only that the workload was evicted."""
_BY_KUBELET: Final = ("TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod.")
"""For the kubelet's other endings the reason is the same, and the message names containers."""
_LOST: Final = frozenset({"DeletionByTaintManager", "DeletionByPodGC"})
_EVICTED: Final = frozenset({"EvictionByEvictionAPI", "TerminationByKubelet"})


def judge_gates(pod: Pod, workload: Workload | None) -> Wait | None:
    """Say what holds a pod back before it is scheduled; None if nothing does."""
    if not pod.gates:
        return None
    if KUEUE_GATE not in pod.gates:
        return wait(WaitReason.GATED, inside(", ".join(pod.gates)), seen=pod.created)
    queue = (workload.queue if workload else "") or pod.labels.get(QUEUE_LABEL, "")
    reserved = workload.condition("QuotaReserved") if workload else None
    message = reserved.message if reserved and not reserved.status else ""
    return _judge_queue(pod, queue, message)


def _judge_queue(pod: Pod, queue: str, message: str) -> Wait:
    said, name = read_saying(message), f" {queue}" if queue else ""
    match said.cause:
        case Cause.TOO_SMALL:
            most = _largest(said.lacks)
            what = f": it holds {most} in all" if most else ""
            return wait(WaitReason.QUEUE_TOO_SMALL, what, fatal=True, seen=pod.created, detail=message)
        case Cause.UNCOUNTED:
            what = f": it has no {words.named(said.lacks[0].resource)}"
            return wait(WaitReason.QUEUE_TOO_SMALL, what, fatal=True, seen=pod.created, detail=message)
        case Cause.STOPPED | Cause.MISSING:
            return wait(WaitReason.QUEUE_STOPPED, name, seen=pod.created, detail=message)
    lack = next((one for one in said.lacks if one.more), None)
    more = _amount(lack.resource, lack.more) if lack else ""
    return wait(
        WaitReason.IN_QUEUE,
        f"{name} for {more} in flavor {lack.flavor}" if lack and more else name,
        seen=pod.created,
        detail=message,
        data={"queue": queue, **({"flavor": lack.flavor, "more": lack.more} if lack else {})},
    )


def _largest(lacks: Sequence[Lack]) -> str:
    """Say how much the flavor holds that has most of what is too little first."""
    resource, most = lacks[0].resource, ""
    amounts = [one.most for one in lacks if one.resource == resource]
    with contextlib.suppress(QuantityError):
        most = words.amount(resource, max(read_amount(resource, one) for one in amounts))
    return most


def _amount(resource: str, quantity: str) -> str:
    try:
        return words.amount(resource, read_amount(resource, quantity))
    except QuantityError:
        return ""


def judge_end(pod: Pod) -> Wait | None:
    """Say why a pod is being deleted; None while it is not."""
    if pod.deleted is None:
        return None
    target = pod.condition("TerminationTarget") or pod.condition("DisruptionTarget")
    reason = target.reason if target and target.status else ""
    message, what = target.message if target else "", ""
    preempted = reason in _PREEMPTED or (reason, message) == _BY_KUBELET
    if preempted or message.startswith(_BY_KUEUE):
        found = WaitReason.PREEMPTED
    elif reason in _LOST:
        found = WaitReason.NODE_LOST
    elif reason in _EVICTED:
        found, what = WaitReason.EVICTED, ": the node is being emptied" if "API" in reason else ""
    else:
        found = WaitReason.DELETED
    return wait(found, what, fatal=True, seen=pod.deleted, detail=message)
