"""What a workspace or a pod asks for, in the currency of limits.

GPU equivalents are stated by the catalog: a whole card is worth the weight of its pool, a MIG slice its
sevenths of that, a share of `n` users an n-th.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

from ..catalog.compose import Workspace
from ..catalog.gpus import equivalents, grant, resource_of
from ..catalog.model import Catalog, MigGpu
from ..gpu.resources import MIG_PREFIX, is_accelerator
from ..names import LABEL_POOL, LABEL_TEAM, server_of
from .arithmetic import (
    CPU,
    GPU_EQUIVALENTS,
    MEMORY,
    SERVERS,
    Amount,
    PodRequest,
    Resources,
    counts,
    pod_request,
)
from .usage import Holding, Owner, server_key

COMPONENT_LABEL: Final = "component"
SINGLEUSER: Final = "singleuser-server"
"""What KubeSpawner writes on the pods of servers (`KubeSpawner.component_label`)."""
"""KubeSpawner's own annotations, for pods that were started without the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """GPU equivalents of one piece of a resource."""

    by_pool: Mapping[tuple[str, str], Fraction]
    """By pool and resource."""
    by_resource: Mapping[str, Fraction]
    """The largest of all pools that offer the resource, for pods that name no pool."""

    def of(self, resource: str, pool: str = "") -> Fraction:
        """Give the worth of one piece; what no pool offers counts as what its name says."""
        found = self.by_pool.get((pool, resource), self.by_resource.get(resource))
        return found if found is not None else _by_name(resource)

    def worth(self, requests: Resources, pool: str = "") -> Fraction:
        """Add up what the accelerators among `requests` are worth."""
        return sum(
            (self.of(name, pool) * number for name, number in requests.items() if is_accelerator(name)),
            Fraction(0),
        )


def weights_of(catalog: Catalog) -> Weights:
    """Collect the weights that the pools of a catalog state."""
    by_pool: dict[tuple[str, str], Fraction] = {}
    for name, pool in catalog.pools.items():
        if (gpu := pool.gpu) is None:
            continue
        for slice_name in gpu.geometry if isinstance(gpu, MigGpu) else ("",):
            by_pool[name, resource_of(gpu, slice_name)] = equivalents(gpu, slice_name, 1)
    by_resource: dict[str, Fraction] = {}
    for (_, resource), weight in by_pool.items():
        by_resource[resource] = max(weight, by_resource.get(resource, Fraction(0)))
    return Weights(by_pool=by_pool, by_resource=by_resource)


_SLICE: Final = re.compile(re.escape(MIG_PREFIX) + r"(?P<compute>[1-7])g\.")


def _by_name(resource: str) -> Fraction:
    """Take a slice that no pool lists for its sevenths of a card, and anything else for a whole one."""
    match = _SLICE.match(resource)
    return Fraction(int(match["compute"]), 7) if match else Fraction(1)


def asked_by(workspace: Workspace, weights: Weights) -> Resources:
    """Say what a workspace of the catalog takes, before its pod is made."""
    amounts: dict[str, Amount] = {
        SERVERS: 1,
        CPU: workspace.cpu.request,
        MEMORY: workspace.memory.request,
    }
    if workspace.gpu is not None and workspace.pool is not None and workspace.pool.gpu is not None:
        given = grant(workspace.pool.gpu, workspace.gpu)
        amounts[given.resource] = given.count
        amounts[GPU_EQUIVALENTS] = weights.of(given.resource, workspace.pool_name) * given.count
    return Resources(amounts)


def holding_of(pod: Mapping[str, Any], weights: Weights, request: PodRequest | None = None) -> Holding:
    """Say what a pod takes and who is charged, from its manifest or as the API shows it.

    Pods that belong to nobody are charged to the empty user: they count for all together. `request` is what
    its `spec` asks for, for callers who know it already.

    Raises
    ------
    QuantityError
        A request is not a quantity; the API never shows such a pod.
    """
    metadata = pod.get("metadata") or {}
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    request = request or pod_request(pod.get("spec") or {})
    is_server = labels.get(COMPONENT_LABEL) == SINGLEUSER
    user, server = server_of(notes)
    namespace = metadata.get("namespace", "")
    worth = weights.worth(request.requests, labels.get(LABEL_POOL, ""))
    extra: dict[str, Amount] = {SERVERS: int(is_server), GPU_EQUIVALENTS: worth}
    return Holding(
        key=server_key(namespace, user, server) if is_server else f"pod:{namespace}/{metadata.get('name')}",
        owner=Owner(user=user, team=labels.get(LABEL_TEAM, "")),
        taken=request.requests + Resources(extra),
        containers=request.by_container,
    )


def observed_holding(pod: Mapping[str, Any], weights: Weights, now: datetime) -> Holding | None:
    """Say what a pod of the cluster takes at `now`; None if it takes no room any more."""
    return holding_of(pod, weights) if counts(pod, now) else None
