"""The `Job` of a run, and the `CronJob` of one that is repeated.

Source: Kubernetes batch/v1; Kueue v0.19 (`queue-name`, `priority-class`, `max-exec-time-seconds`).

Pure: no clock, no network.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from hub_ext.catalog.model import Catalog
from hub_ext.cluster.pods import QUEUE_LABEL

from ..ids import ANNOTATION_HASH, ANNOTATION_RECORD, request_hash
from ..plan import Plan
from ..record import record_of
from .pod import build_labels, build_template
from .site import Site

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
LONGEST_LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
GIVE_UP: Final = 42
"""Exit code of the runner for what another try would not change."""
_SLACK: Final = timedelta(minutes=15)
"""Kueue ends a run that takes too long; Kubernetes' own deadline is the guard behind it."""
_KEEP_AFTER: Final = timedelta(days=7)
"""The service removes what has ended; Kubernetes does if the service is away for long."""
_HISTORY: Final = 20
"""Ended runs of a schedule that Kubernetes keeps: as many can end while the service is away."""


def build_metadata(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    """Build what the objects of all kinds have: name, queue, owner, and the record of the run."""
    return {
        "name": plan.id,
        "namespace": site.namespace,
        "labels": build_labels(catalog, plan) | build_queue_labels(plan),
        "annotations": {
            ANNOTATION_RECORD: record_of(plan, submitted=site.submitted).as_json(),
            ANNOTATION_HASH: request_hash(plan.request.model_dump(mode="json", exclude={"key"})),
        },
    }


def build_queue_labels(plan: Plan) -> dict[str, str]:
    """Build the labels that Kueue reads."""
    seconds = str(int(plan.max_duration.total_seconds()))
    priority = {PRIORITY_LABEL: plan.priority} if plan.priority else {}
    return {QUEUE_LABEL: plan.queue, LONGEST_LABEL: seconds, **priority}


def build_job(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    """Build the Job of a run."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": build_metadata(catalog, plan, site),
        "spec": _job_spec(catalog, plan, site),
    }


def _job_spec(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    keep = site.settings.keep.objects + _KEEP_AFTER
    return {
        "suspend": True,
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": plan.request.retries,
        "activeDeadlineSeconds": int((plan.max_duration + _SLACK).total_seconds()),
        "ttlSecondsAfterFinished": int(keep.total_seconds()),
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailJob",
                    "onExitCodes": {"containerName": "main", "operator": "In", "values": [GIVE_UP]},
                },
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": build_template(catalog, plan, site),
    }


def build_cron_job(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    """Build the CronJob of a repeated run; each of its Jobs waits in the queue like any other.

    Raises
    ------
    ValueError
        The plan has no schedule.
    """
    schedule = plan.schedule
    if schedule is None:
        raise ValueError(plan.id)
    metadata = build_metadata(catalog, plan, site)
    labels = metadata["labels"]
    own = {key: value for key, value in labels.items() if not key.startswith("kueue.x-k8s.io/")}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata | {"labels": own},
        "spec": {
            "schedule": schedule.cron,
            "timeZone": schedule.time_zone,
            # One that was replaced would be gone without a record, and any number could pile up.
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 3600,
            "successfulJobsHistoryLimit": _HISTORY,
            "failedJobsHistoryLimit": _HISTORY,
            "jobTemplate": {
                "metadata": {"labels": labels, "annotations": metadata["annotations"]},
                "spec": _job_spec(catalog, plan, site),
            },
        },
    }
