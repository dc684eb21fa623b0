"""One door to all kinds, and the ConfigMaps beside them.

Pure: no clock, no network.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from hub_ext.catalog.model import Catalog, RunKind
from hub_ext.names import LABEL_JOB

from ..ids import content_name
from ..plan import Plan
from .job import build_cron_job, build_job
from .pod import MANAGED_BY
from .rayjob import build_ray_job
from .site import SOURCE_FILE, Site
from .trainjob import build_train_job

Builder = Callable[[Catalog, Plan, Site], dict[str, Any]]
_BUILDERS: Final[Mapping[RunKind, Builder]] = {
    RunKind.JOB: build_job,
    RunKind.TRAIN_JOB: build_train_job,
    RunKind.RAY_JOB: build_ray_job,
}
LABEL_PART: Final = "app.kubernetes.io/component"


def build_run(catalog: Catalog, plan: Plan, site: Site) -> dict[str, Any]:
    """Build the object of a run."""
    if plan.schedule is not None:
        return build_cron_job(catalog, plan, site)
    return _BUILDERS[plan.kind](catalog, plan, site)


def build_runner_map(namespace: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Build the ConfigMap with the program that runs in the pods; a changed program gets another name."""
    content = json.dumps(files, sort_keys=True).encode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "immutable": True,
        "metadata": {
            "name": content_name("handoff-runner", content),
            "namespace": namespace,
            "labels": MANAGED_BY | {LABEL_PART: "runner"},
        },
        "data": dict(files),
    }


def build_source_map(namespace: str, run: str, archive: bytes) -> dict[str, Any]:
    """Build the ConfigMap with the source of a run."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "immutable": True,
        "metadata": {
            "name": f"{run}-source",
            "namespace": namespace,
            "labels": MANAGED_BY | {LABEL_PART: "source", LABEL_JOB: run},
        },
        "binaryData": {SOURCE_FILE: base64.b64encode(archive).decode("ascii")},
    }
