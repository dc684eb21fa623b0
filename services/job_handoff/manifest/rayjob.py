"""The `RayJob` of a run: a Ray cluster that lives as long as the run.

Source: ray.io/v1 of KubeRay 1.6 and 1.7 (`validation.go`); Kueue's page on RayJobs: a RayJob on a cluster
that is there already is not counted at all, one that does not shut down cannot be suspended, and a workload
has at most 18 kinds of pods.

Pure: no clock, no network.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from hub_ext.catalog.model import Catalog
from hub_ext.units import format_bytes

from ..plan import Plan
from .job import build_metadata
from .pod import (
    build_container_security,
    build_labels,
    build_pod_security,
    build_template,
    runner_command,
)
from .site import Site

API_VERSION: Final = "ray.io/v1"
MOST_GROUPS: Final = 17
"""Groups of workers; with the head they are Kueue's 18 kinds of pods."""
SUBMITTER: Final = {"cpu": "200m", "memory": "300Mi"}
"""What the pod takes that only hands the program to the cluster; it counts in the quota."""
CLUSTER_SECONDS: Final = 10
"""How long the pods of a Ray cluster outlive the run: they hold GPUs that Kueue counts as free."""
ELASTIC: Final = "kueue.x-k8s.io/elastic-job"
_FETCH: Final = "fetch"


class RayVerdict(StrEnum):
    """Whether Kueue can hold and release a RayJob."""

    OK = "ok"
    CONDITIONAL = "conditional"
    """Only where Kueue has elastic jobs switched on."""
    ERROR = "error"


def judge_ray_job(ray_job: Mapping[str, Any]) -> tuple[RayVerdict, str]:
    """Say whether a RayJob can be queued, and why not."""
    spec = ray_job.get("spec") or {}
    cluster = spec.get("rayClusterSpec") or {}
    notes = (ray_job.get("metadata") or {}).get("annotations") or {}
    if spec.get("clusterSelector"):
        return RayVerdict.ERROR, "clusterSelector: a job on another cluster's pods is not counted by Kueue"
    if not spec.get("shutdownAfterJobFinishes"):
        what = "ttlSecondsAfterFinished needs it" if spec.get("ttlSecondsAfterFinished") else "Kueue needs it"
        return RayVerdict.ERROR, f"shutdownAfterJobFinishes must be true: {what}"
    if len(cluster.get("workerGroupSpecs") or ()) > MOST_GROUPS:
        return RayVerdict.ERROR, f"more than {MOST_GROUPS} groups of workers"
    if cluster.get("enableInTreeAutoscaling"):
        if notes.get(ELASTIC) != "true":
            return (
                RayVerdict.CONDITIONAL,
                f"autoscaling needs the annotation {ELASTIC} and Kueue's elastic jobs",
            )
        return RayVerdict.CONDITIONAL, "autoscaling needs Kueue's elastic jobs"
    return RayVerdict.OK, ""


def build_ray_job(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    """Build the RayJob of a run: a head, and workers beside it where more than one pod was asked for."""
    template = build_template(catalog, plan, site)
    cluster: dict[str, Any] = {
        "rayVersion": plan.rules.ray_version,
        "headGroupSpec": {
            "rayStartParams": _start(plan, {"dashboard-host": "0.0.0.0"}),  # noqa: S104 - of its own pod
            "template": _ray_pod(template, "ray-head", plan),
        },
    }
    if plan.request.nodes > 1:
        workers = plan.request.nodes - 1
        cluster["workerGroupSpecs"] = [
            {
                "groupName": "workers",
                "replicas": workers,
                "minReplicas": workers,
                "maxReplicas": workers,
                "rayStartParams": _start(plan, {}),
                "template": _ray_pod(template, "ray-worker", plan),
            }
        ]
    return {
        "apiVersion": API_VERSION,
        "kind": "RayJob",
        "metadata": build_metadata(catalog, plan, site),
        "spec": {
            "suspend": True,
            "entrypoint": shlex.join(runner_command("run")),
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": CLUSTER_SECONDS,
            "activeDeadlineSeconds": int(plan.max_duration.total_seconds()) + 900,
            "backoffLimit": plan.request.retries,
            "submitterPodTemplate": _submitter(catalog, plan, site),
            "rayClusterSpec": cluster,
        },
    }


def _start(plan: Plan, more: Mapping[str, str]) -> dict[str, str]:
    """Tell Ray what the pod has; it would see all processors of the node."""
    limit = plan.workspace.cpu.limit or plan.workspace.cpu.request
    memory = plan.workspace.memory.request
    return {
        "num-cpus": str(max(1, limit // 1000)),
        "object-store-memory": str(max(80_000_000, memory // 10)),
        **more,
    }


def _ray_pod(template: Mapping[str, Any], name: str, plan: Plan) -> dict[str, Any]:
    """Build a pod of the Ray cluster: the source is there before Ray starts, on every node of it."""
    pod = copy.deepcopy(dict(template))
    spec = pod["spec"]
    main = spec["containers"][0]
    fetch = {
        **{key: main[key] for key in ("image", "imagePullPolicy", "env", "securityContext", "volumeMounts")},
        "name": _FETCH,
        "command": runner_command(_FETCH),
        "resources": {"requests": dict(SUBMITTER), "limits": dict(SUBMITTER)},
    }
    del main["command"]
    main["name"] = name
    main["env"] = [*main["env"], {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"}]
    spec["initContainers"] = [fetch]
    # Ray's own memory store; what is on disk instead is slow.
    if not any(volume["name"] == "workspace-shared-memory" for volume in spec["volumes"]):
        size = format_bytes(max(2**28, plan.workspace.memory.request // 4))
        spec["volumes"].append({"name": "ray-memory", "emptyDir": {"medium": "Memory", "sizeLimit": size}})
        main["volumeMounts"].append({"name": "ray-memory", "mountPath": "/dev/shm"})  # noqa: S108
    return pod


def _submitter(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    """Build the pod that hands the program to the cluster; KubeRay writes its command."""
    return {
        "metadata": {"labels": build_labels(catalog, plan)},
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": site.settings.service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": build_pod_security(site),
            "imagePullSecrets": [{"name": name} for name in plan.pull_secrets],
            "containers": [
                {
                    "name": "ray-job-submitter",
                    "image": str(plan.image),
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {"requests": dict(SUBMITTER), "limits": dict(SUBMITTER)},
                    "securityContext": build_container_security(plan, site),
                }
            ],
        },
    }
