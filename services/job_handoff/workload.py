"""Kueue's Workload in the words of a run: is it its turn, and if not, why.

Kueue 0.19 gives most waits the reason `Pending` and says the rest in a sentence; 0.20 has a reason for each.
Both are read.

Source: Kueue v0.19.2 and v0.20.0, `apis/kueue/v1beta2/workload_types.go`; `hub_ext.cluster.kueue_says` reads
the sentences.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hub_ext.cluster.kueue_says import Cause, read_saying
from hub_ext.cluster.pods import Condition, read_conditions

from .reasons import RunReason

_REASONS: Final = {
    "WaitingForQuota": RunReason.WAITING_FOR_QUOTA,
    "ExceedsMaxQuota": RunReason.EXCEEDS_QUEUE,
    "NoMatchingFlavor": RunReason.NO_MATCHING_FLAVOR,
    "TopologyPlacementFailed": RunReason.TOPOLOGY,
    "WaitingForPreemptedWorkloads": RunReason.WAITING_FOR_PREEMPTED,
    "WaitingForPodsReady": RunReason.WAITING_FOR_PODS,
    "Misconfigured": RunReason.QUEUE_MISCONFIGURED,
    "Suspended": RunReason.HELD,
    "OnHold": RunReason.HELD,
    "AdmissionGated": RunReason.HELD,
    "UnsatisfiedAdmissionChecks": RunReason.ADMISSION_CHECK,
    "PendingDelayedTopologyRequests": RunReason.TOPOLOGY,
}
_EVICTIONS: Final = {
    "Preempted": RunReason.PREEMPTED,
    "PodsReadyTimeout": RunReason.REQUEUED,
    "AdmissionCheck": RunReason.ADMISSION_CHECK,
    "ClusterQueueStopped": RunReason.QUEUE_STOPPED,
    "LocalQueueStopped": RunReason.QUEUE_STOPPED,
    "NodeFailures": RunReason.REQUEUED,
    "MaximumExecutionTimeExceeded": RunReason.DEADLINE,
    "RequeuingLimitExceeded": RunReason.STUCK,
    "Deactivated": RunReason.DEACTIVATED,
}
_CAUSES: Final = {
    Cause.PREEMPTING: RunReason.WAITING_FOR_PREEMPTED,
    Cause.TOPOLOGY: RunReason.TOPOLOGY,
    Cause.FULL: RunReason.WAITING_FOR_QUOTA,
    Cause.TOO_SMALL: RunReason.EXCEEDS_QUEUE,
    Cause.NO_FLAVOR: RunReason.NO_MATCHING_FLAVOR,
    Cause.UNCOUNTED: RunReason.QUEUE_MISCONFIGURED,
    Cause.STOPPED: RunReason.QUEUE_STOPPED,
    Cause.MISSING: RunReason.QUEUE_MISCONFIGURED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Where a run is in its queue."""

    admitted: bool = False
    deactivated: bool = False
    """Taken out of the queue: it does not come back by itself."""
    reason: RunReason | None = None
    since: datetime | None = None
    detail: str = ""
    preemptions: int = 0


def read_queue_state(workload: Mapping[str, Any] | None) -> QueueState:
    """Read a Workload in API spelling; without one nothing is known but that it waits."""
    if workload is None:
        return QueueState()
    status = workload.get("status") or {}
    conditions = {one.type: one for one in read_conditions(status)}
    evicted, preemptions = conditions.get("Evicted"), _preemptions(status, conditions)
    if workload.get("spec", {}).get("active", True) is False:
        reason = _eviction(evicted) if evicted and evicted.status else RunReason.DEACTIVATED
        return QueueState(
            deactivated=True,
            reason=reason,
            since=evicted.since if evicted else None,
            detail=evicted.message if evicted else "",
            preemptions=preemptions,
        )
    admitted = conditions.get("Admitted")
    if admitted is not None and admitted.status and not (evicted and evicted.status):
        return QueueState(admitted=True, since=admitted.since, preemptions=preemptions)
    return _waiting(conditions, preemptions)


def _waiting(conditions: Mapping[str, Condition], preemptions: int) -> QueueState:
    evicted, reserved = conditions.get("Evicted"), conditions.get("QuotaReserved")
    admitted = conditions.get("Admitted")
    if evicted is not None and evicted.status:
        return QueueState(
            reason=_eviction(evicted), since=evicted.since, detail=evicted.message, preemptions=preemptions
        )
    if reserved is not None and reserved.status:
        return QueueState(
            reason=RunReason.ADMISSION_CHECK,
            since=reserved.since,
            detail=admitted.message if admitted else "",
            preemptions=preemptions,
        )
    if reserved is None:
        return QueueState(preemptions=preemptions)
    reason = _REASONS.get(reserved.reason) or _by_message(reserved.message)
    return QueueState(reason=reason, since=reserved.since, detail=reserved.message, preemptions=preemptions)


def _by_message(message: str) -> RunReason | None:
    cause = read_saying(message).cause
    return _CAUSES[cause] if cause is not None else None


def _eviction(evicted: Condition) -> RunReason:
    """Read why it was evicted; a deactivation carries its cause behind the word."""
    for word in (evicted.reason, evicted.reason.removeprefix("DeactivatedDueTo")):
        if word in _EVICTIONS:
            return _EVICTIONS[word]
    return RunReason.REQUEUED


def _preemptions(status: Mapping[str, Any], conditions: Mapping[str, Condition]) -> int:
    """Count preemptions: by Kueue's own statistics, or at least the one that is visible."""
    counted = (status.get("schedulingStats") or {}).get("evictions") or ()
    total = sum(int(one.get("count") or 0) for one in counted if one.get("reason") == "Preempted")
    seen = conditions.get("Preempted")
    return max(total, int(seen is not None and bool(seen.reason)))
