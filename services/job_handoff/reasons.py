"""Why a run stands as it does; the same word is in the log, the metric, the JSON and the page.

Pure: no clock, no network.
"""

from __future__ import annotations

from enum import StrEnum


class RunReason(StrEnum):
    """Why a run is where it is. While it starts, the words of `hub_ext.cluster.waits` are used."""

    QUEUED = "queued"
    WAITING_FOR_QUOTA = "waiting-for-quota"
    EXCEEDS_QUEUE = "exceeds-queue"
    NO_MATCHING_FLAVOR = "no-matching-flavor"
    TOPOLOGY = "topology"
    WAITING_FOR_PREEMPTED = "waiting-for-preempted"
    WAITING_FOR_PODS = "waiting-for-pods"
    QUEUE_MISCONFIGURED = "queue-misconfigured"
    QUEUE_STOPPED = "queue-stopped"
    HELD = "held"
    ADMISSION_CHECK = "admission-check"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    ADMITTED = "admitted"
    NO_PODS = "no-pods"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    RESULTS_NOT_KEPT = "results-not-kept"
    CANCELED = "canceled"
    DEADLINE = "deadline"
    OUT_OF_MEMORY = "out-of-memory"
    GPU_OUT_OF_MEMORY = "gpu-out-of-memory"
    ENDED_BY_CLUSTER = "ended-by-cluster"
    EVICTED = "evicted"
    KERNEL_MISSING = "kernel-missing"
    PAPERMILL_MISSING = "papermill-missing"
    ENTRY_MISSING = "entry-missing"
    LAUNCHER_MISSING = "launcher-missing"
    SOURCE_LOST = "source-lost"
    SERVICE_AWAY = "service-away"
    DISK_FULL = "disk-full"
    PROGRAM_FAILED = "program-failed"
    REFUSED = "refused"
    STUCK = "stuck"
    DEACTIVATED = "deactivated"
    FAILED = "failed"
