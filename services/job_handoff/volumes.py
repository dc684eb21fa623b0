"""What the cluster says about the claim of a home before a run mounts it.

What the account may not see stays unknown, and refuses nothing.

Shell: talks to the Kubernetes API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from hub_ext.catalog.model import Pool
from hub_ext.cluster.capacity import can_scale
from hub_ext.cluster.nodes import Node, read_node, selects, untolerated
from hub_ext.cluster.zones import zones_of_nodes, zones_of_volume
from hub_ext.quota.arithmetic import Resources
from services.kube import ForbiddenError, Kube, api_path

from .cluster import Cluster
from .home import UNSEEN, HomeFacts, is_shared
from .ids import ANNOTATION_CANCELED, ANNOTATION_STUCK
from .status import read_end

_PASSING: Final = "node.kubernetes.io/"
"""Taints of nodes that are cordoned or away for a while: they come back, in the same zone."""


async def look_at_home(
    kube: Kube, cluster: Cluster, *, claim: str, declared: str, pool: Pool | None, asked: Resources
) -> HomeFacts:
    """Look where a claim is bound to, where the nodes are that a run could get, and who has it.

    Parameters
    ----------
    declared
        Access mode that the catalog gives it.
    asked
        Of one pod of the run.
    """
    try:
        found = await kube.find(api_path("v1", "persistentvolumeclaims", claim, namespace=cluster.namespace))
    except ForbiddenError:
        return UNSEEN
    if found is None:
        return HomeFacts(found=False)
    spec, status = found.get("spec") or {}, found.get("status") or {}
    zones = await _zones_of(kube, spec.get("volumeName") or "")
    facts = HomeFacts(
        found=True,
        is_lost=status.get("phase") == "Lost",
        modes=tuple(status.get("accessModes") or spec.get("accessModes") or ()),
        zones=zones,
        node_zones=await _zones_of_pool(kube, pool, asked) if zones else frozenset(),
        scales=can_scale(pool, asked),
    )
    if is_shared(facts.mode(declared)):
        return facts
    taken = any(_waits_for(obj, claim) for obj in await cluster.runs())
    return replace(facts, in_use=taken)


async def _zones_of(kube: Kube, volume: str) -> frozenset[str]:
    """Give the zones of a volume; nothing for a claim that has none yet: it is made where the run goes."""
    if not volume:
        return frozenset()
    try:
        found = await kube.find(api_path("v1", "persistentvolumes", volume))
    except ForbiddenError:
        return frozenset()
    return zones_of_volume(found) if found is not None else frozenset()


async def _zones_of_pool(kube: Kube, pool: Pool | None, asked: Resources) -> frozenset[str]:
    selector = pool.node_selector if pool else {}
    labels = {"labelSelector": ",".join(f"{key}={value}" for key, value in selector.items())}
    try:
        listed = await kube.list(api_path("v1", "nodes"), **(labels if selector else {}))
    except ForbiddenError:
        return frozenset()
    return zones_of_nodes(_of_pool((read_node(one) for one in listed), pool, asked))


def _of_pool(nodes: Iterable[Node], pool: Pool | None, asked: Resources) -> list[Node]:
    """Give the nodes that a pool could ever get, whether they take pods at this moment or not."""
    tolerations = pool.tolerations if pool else ()
    return [
        node
        for node in nodes
        if selects(node, pool.node_selector if pool else {})
        and all(str(taint.get("key")).startswith(_PASSING) for taint in untolerated(node, tolerations, asked))
    ]


def _waits_for(obj: Mapping[str, Any], claim: str) -> bool:
    """Say whether a run that has not ended mounts a claim; only a Job may mount one of a single node."""
    notes = obj["metadata"].get("annotations") or {}
    if obj["kind"] != "Job" or ANNOTATION_CANCELED in notes or ANNOTATION_STUCK in notes:
        return False
    pod = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    named = [(one.get("persistentVolumeClaim") or {}).get("claimName") for one in pod.get("volumes") or ()]
    return claim in named and read_end(obj) is None
