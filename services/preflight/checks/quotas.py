"""Quotas of the namespaces of workspaces.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hub_ext.catalog.gpus import resources_of
from hub_ext.errors import Severity
from hub_ext.gpu.resources import is_accelerator
from hub_ext.quota.namespace import ResourceQuota, findings, read_quota

from ..problems import Check, Problem
from ..scene import Scene

_COMPUTE: Final = {
    "requests.cpu": ("defaultRequest", "cpu"),
    "requests.memory": ("defaultRequest", "memory"),
    "limits.cpu": ("default", "cpu"),
    "limits.memory": ("default", "memory"),
}


def _quotas(scene: Scene, namespace: str) -> list[ResourceQuota]:
    return [read_quota(one) for one in scene.objects.inside("ResourceQuota", namespace)]


def gpus_bounded(scene: Scene) -> Iterator[Problem]:
    offered = {name for node in scene.nodes for name in node.allocatable if is_accelerator(name)}
    pools = scene.catalog.pools.values() if scene.catalog else ()
    offered |= {name for pool in pools if pool.gpu for name in resources_of(pool.gpu)}
    for namespace in scene.namespaces:
        for found in findings(_quotas(scene, namespace), offered=sorted(offered)):
            yield Problem(
                message=found.message,
                help=found.help,
                path=f"resourcequotas/{namespace}",
                severity=found.severity,
            )


def defaults_for_all(scene: Scene) -> Iterator[Problem]:
    """Once a quota counts cpu or memory, every container has to say how much, sidecars included."""
    for namespace in scene.namespaces:
        ranges = [
            limit
            for one in scene.objects.inside("LimitRange", namespace)
            for limit in one["spec"].get("limits") or []
            if limit.get("type") == "Container"
        ]
        for quota in _quotas(scene, namespace):
            lacking = [
                key
                for key in quota.bounded
                if (where := _COMPUTE.get(key))
                and not any(where[1] in (r.get(where[0]) or {}) for r in ranges)
            ]
            if lacking:
                yield Problem(
                    message=f"quota {namespace}/{quota.name} refuses every pod with a container that does "
                    "not say "
                    f"{', '.join(lacking)}, such as a sidecar",
                    evidence=f"no LimitRange in {namespace} gives defaults for them",
                    help="Add a LimitRange: gpu-workspaces render --target limitrange prints one.",
                    path=f"resourcequotas/{namespace}/{quota.name}",
                    severity=Severity.WARNING,
                )


def quotas_counted(scene: Scene) -> Iterator[Problem]:
    for namespace in scene.namespaces:
        for one in scene.objects.inside("ResourceQuota", namespace):
            if (one.get("spec") or {}).get("hard") and not (one.get("status") or {}).get("hard"):
                yield Problem(
                    message=f"quota {namespace}/{one['metadata']['name']} has not been counted",
                    evidence="status.hard is empty",
                    help="Until the quota controller has counted, every pod is refused; see the controller "
                    "manager.",
                    path=f"resourcequotas/{namespace}/{one['metadata']['name']}",
                )


CHECKS = (
    Check(
        code="gpu-quota",
        title="Quotas bound GPUs under the names that count",
        kinds=("ResourceQuota", "Node"),
        run=gpus_bounded,
    ),
    Check(
        code="quota-defaults",
        title="Quotas refuse no pod for what it does not say",
        kinds=("ResourceQuota", "LimitRange"),
        run=defaults_for_all,
    ),
    Check(code="quota-status", title="Quotas are counted", kinds=("ResourceQuota",), run=quotas_counted),
)
