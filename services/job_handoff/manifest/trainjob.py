"""The `TrainJob` of a run.

Users never write `runtimePatches`: one can set any account or volume. What a patch cannot set (restarts, the
time to live, the mount of the account's token) is the admin's ClusterTrainingRuntime's.

Source: trainer.kubeflow.org/v1alpha1 of Trainer 2.2 and 2.3; the merge rules of resources differ between
versions, so both requests and limits are written out in full.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hub_ext.catalog.model import Catalog
from hub_ext.gpu.resources import is_accelerator
from hub_ext.gpu.sharing import Sharing
from hub_ext.names import DOMAIN

from ..plan import Plan
from .job import build_metadata
from .pod import build_container, build_resources, build_template
from .site import Site

API_VERSION: Final = "trainer.kubeflow.org/v1alpha1"
MANAGER: Final = f"{DOMAIN}/job-handoff"
NODE: Final = "node"
"""Name that Trainer gives the replicated job and the container that trains."""


def build_train_job(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    """Build the TrainJob of a run."""
    template = build_template(catalog, plan, site)
    mounts = template["spec"]["containers"][0]["volumeMounts"]
    container = build_container(catalog, plan, site, mounts, name=NODE)
    resources = complete_resources({}, build_resources(plan))
    trainer = {
        "image": container["image"],
        "command": container["command"],
        "env": container["env"],
        "numNodes": plan.request.nodes,
        "numProcPerNode": processes_per_node(plan, resources["limits"]),
        "resourcesPerNode": resources,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": build_metadata(catalog, plan, site),
        "spec": {
            "suspend": True,
            "runtimeRef": {"name": plan.rules.train_runtime},
            "trainer": trainer,
            "activeDeadlineSeconds": int(plan.max_duration.total_seconds()) + 900,
            "runtimePatches": [{"manager": MANAGER, "trainingRuntimeSpec": _patch(template, container)}],
        },
    }


def _patch(template: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Any]:
    spec = template["spec"]
    patched = {
        "name": NODE,
        "volumeMounts": container["volumeMounts"],
        "securityContext": container["securityContext"],
    }
    pod = {
        "serviceAccountName": spec["serviceAccountName"],
        "securityContext": spec["securityContext"],
        "volumes": spec["volumes"],
        "containers": [patched],
        **{key: spec[key] for key in ("nodeSelector", "tolerations", "imagePullSecrets") if key in spec},
    }
    node = {
        "name": NODE,
        "template": {"spec": {"template": {"metadata": template["metadata"], "spec": pod}}},
    }
    return {"template": {"spec": {"replicatedJobs": [node]}}}


def processes_per_node(plan: Plan, limits: Mapping[str, str]) -> int:
    """Say how many processes train in one pod: one per card.

    Slices and shares make one: a process sees only one slice, and two shares may be the same card.
    """
    gpu = plan.workspace.pool.gpu if plan.workspace.pool and plan.workspace.gpu else None
    return accelerators(limits) if gpu is not None and gpu.sharing is Sharing.EXCLUSIVE else 1


def accelerators(amounts: Mapping[str, str]) -> int:
    """Count the GPUs among some amounts, at least one."""
    return max(1, sum(int(number) for name, number in amounts.items() if is_accelerator(name)))


def complete_resources(
    runtime: Mapping[str, Mapping[str, str]], asked: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Put what was asked for over what a runtime declares; limits and requests both carry every resource.

    An amount that stands on one side only counts for both: the API server refuses a GPU that is only
    requested, and Trainer drops what a partial block leaves out.
    """
    known = {**runtime.get("requests", {}), **runtime.get("limits", {})}
    new = {**asked.get("requests", {}), **asked.get("limits", {})}
    requests = {**known, **runtime.get("requests", {}), **new, **asked.get("requests", {})}
    limits = {**known, **new}
    for name in requests:
        if is_accelerator(name):
            requests[name] = limits[name]
    return {"requests": requests, "limits": limits}
