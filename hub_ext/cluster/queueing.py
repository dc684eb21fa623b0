"""Waits before the scheduler has a say: gates, and Kueue's queues.

Sources: Kueue v0.19 (conditions of Workload, messages of the flavor assigner, `TerminationTarget` on pods).

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import QuantityError
from ..quota import words
from ..quota.arithmetic import read_amount
from .nature import wait
from .pods import KUEUE_GATE, QUEUE_LABEL, Pod
from .texts import inside
from .waits import Wait, WaitReason
from .workloads import Workload

_MORE: Final = re.compile(
    r"insufficient unused quota for (?P<resource>\S+) in flavor (?P<flavor>[^,\s]+), "
    r"(?P<more>\S+) more needed"
)
_TOO_SMALL: Final = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>[^,\s]+)"
    r".*> maximum capacity \((?P<most>\S+)\)"
)
_UNCOUNTED: Final = re.compile(r"resource (?P<resource>\S+) unavailable in ClusterQueue")
_STOPPED: Final = re.compile(r"Queue \S+ (?:doesn't exist|is inactive)")


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
    name = f" {queue}" if queue else ""
    if match := _TOO_SMALL.search(message):
        most = _amount(match["resource"], match["most"])
        what = f": it holds {most} in all" if most else ""
        return wait(WaitReason.QUEUE_TOO_SMALL, what, fatal=True, seen=pod.created, detail=message)
    if match := _UNCOUNTED.search(message):
        what = f": it has no {words.named(match['resource'])}"
        return wait(WaitReason.QUEUE_TOO_SMALL, what, fatal=True, seen=pod.created, detail=message)
    if _STOPPED.search(message):
        return wait(WaitReason.QUEUE_STOPPED, name, seen=pod.created, detail=message)
    match = _MORE.search(message)
    more = _amount(match["resource"], match["more"]) if match else ""
    wanted = f" for {more} in flavor {match['flavor']}" if match and more else ""
    numbers = {"flavor": match["flavor"], "more": match["more"]} if match else {}
    return wait(
        WaitReason.IN_QUEUE,
        f"{name}{wanted}",
        seen=pod.created,
        detail=message,
        data={"queue": queue, **numbers},
    )


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
    if "preempt" in f"{reason} {message}".lower():
        found = WaitReason.PREEMPTED
    elif reason in {"DeletionByTaintManager", "DeletionByPodGC"}:
        found = WaitReason.NODE_LOST
    elif reason in {"EvictionByEvictionAPI", "TerminationByKubelet"}:
        found, what = WaitReason.EVICTED, ": the node is being emptied" if "API" in reason else ""
    else:
        found = WaitReason.DELETED
    return wait(found, what, fatal=True, seen=pod.deleted, detail=message)
