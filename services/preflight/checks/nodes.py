"""Pools of the catalog against nodes: does anything there take and offer what is promised?

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hub_ext.catalog.compose import Workspace
from hub_ext.catalog.gpus import grant
from hub_ext.cluster.nodes import Node, untolerated
from hub_ext.errors import Severity
from hub_ext.gpu.drivers import is_older, min_driver
from hub_ext.quota.arithmetic import Resources

from ..problems import Check, Problem
from ..scene import Scene

OLDEST = (1, 32)
"""Kubernetes, by minor version."""
_DRIVER = "nvidia.com/cuda.driver-version.full"
_RUNTIME = "nvidia.com/cuda.runtime-version.full"


def kubernetes_version(scene: Scene) -> Iterator[Problem]:
    for node in scene.nodes:
        match = re.match(r"v?(\d+)\.(\d+)", node.kubelet)
        if match and (int(match[1]), int(match[2])) < OLDEST:
            yield Problem(
                message=f"node {node.name} runs Kubernetes {node.kubelet}",
                help=f"Update it to {OLDEST[0]}.{OLDEST[1]} or newer.",
                path=f"nodes/{node.name}",
            )


def pool_has_nodes(scene: Scene) -> Iterator[Problem]:
    for name, pool in scene.pools.items():
        if scene.nodes_of(pool):
            continue
        grows = pool.scale_up is not None
        yield Problem(
            message=f"no node has the labels of pool {name}"
            + (" at the moment; its nodes are added on demand" if grows else ""),
            evidence=f"nodeSelector {dict(pool.node_selector)}",
            help="Label the nodes, or correct the pool's nodeSelector.",
            path=f"pools.{name}",
            severity=Severity.NOTE if grows else Severity.ERROR,
        )


def taints_tolerated(scene: Scene) -> Iterator[Problem]:
    for name, pool in scene.pools.items():
        asked = Resources(dict.fromkeys(_resources(scene, name), 1))
        for node in scene.nodes_of(pool):
            if taints := untolerated(node, pool.tolerations, asked):
                keys = ", ".join(f"{taint['key']}:{taint['effect']}" for taint in taints)
                yield Problem(
                    message=f"pool {name} does not tolerate taints of node {node.name}",
                    evidence=keys,
                    help=f"Add the taints to pools.{name}.tolerations, or take them off the node.",
                    path=f"pools.{name}.tolerations",
                    severity=Severity.WARNING,
                )


def resources_offered(scene: Scene) -> Iterator[Problem]:
    """Every workspace has a node that offers all that it asks for."""
    told = set()
    for workspace in scene.workspaces:
        problem = _unoffered(scene, workspace)
        if problem and problem.message not in told:
            told.add(problem.message)
            yield problem


def _unoffered(scene: Scene, workspace: Workspace) -> Problem | None:
    pool = workspace.pool
    if pool is None or pool.gpu is None or workspace.gpu is None or pool.gpu.via == "dra":
        return None
    asked = grant(pool.gpu, workspace.gpu)
    nodes = scene.nodes_of(pool)
    most = max((int(node.usable[asked.resource]) for node in nodes), default=0)
    if not nodes or most >= asked.count:
        return None  # a pool without nodes is told by itself
    offered = {
        name: str(number)
        for node in nodes
        for name, number in node.usable.items()
        if "nvidia.com" in name or "amd.com" in name
    }
    profile = workspace.profile
    return Problem(
        message=f"{profile.name}@{profile.version} asks for {asked.count} of {asked.resource}; "
        f"no node of pool {workspace.pool_name} offers more than {most}",
        evidence=f"offered there: {offered or 'nothing'}",
        help="Compare the pool's gpu section with the device plugin's configuration (strategy, sharing, "
        "renaming).",
        path=f"pools.{workspace.pool_name}.gpu",
    )


def drivers(scene: Scene) -> Iterator[Problem]:
    told = set()
    for workspace in scene.workspaces:
        cuda, pool = workspace.image.cuda, workspace.pool
        if not cuda or pool is None or pool.gpu is None:
            continue
        for node in scene.nodes_of(pool):
            why = _too_old(node, cuda)
            if why and (workspace.image_key, node.name) not in told:
                told.add((workspace.image_key, node.name))
                yield Problem(
                    message=f"image {workspace.image_key} needs CUDA {cuda}; the driver of {node.name} is "
                    "older",
                    evidence=why,
                    help="Update the driver, or offer an image for an older CUDA in this pool.",
                    path=f"images.{workspace.image_key}",
                )


def _too_old(node: Node, cuda: str) -> str:
    """Say why a node cannot run an image; empty if it can, or if the node does not say."""
    runtime = node.labels.get(_RUNTIME, "")
    if runtime[:1].isdigit() and int(runtime.partition(".")[0]) < int(cuda.partition(".")[0]):
        return f"{_RUNTIME}={runtime}"
    driver, floor = node.labels.get(_DRIVER, ""), min_driver(cuda)
    if floor and re.fullmatch(r"\d+(\.\d+)*", driver) and is_older(driver, floor):
        return f"{_DRIVER}={driver}, needed {floor}"
    return ""


def _resources(scene: Scene, pool_name: str) -> set[str]:
    return {
        grant(w.pool.gpu, w.gpu).resource
        for w in scene.workspaces
        if w.pool_name == pool_name and w.pool and w.pool.gpu and w.gpu
    }


CHECKS = (
    Check(
        code="kubernetes-version",
        title="Kubernetes is new enough on every node",
        kinds=("Node",),
        run=kubernetes_version,
    ),
    Check(
        code="pool-nodes",
        title="Every pool has nodes",
        kinds=("Node",),
        needs=("catalog",),
        run=pool_has_nodes,
    ),
    Check(
        code="pool-taints",
        title="Pools tolerate the taints of their nodes",
        kinds=("Node",),
        needs=("catalog", "pool_nodes"),
        run=taints_tolerated,
    ),
    Check(
        code="resource-offered",
        title="Every workspace finds a node that offers what it asks for",
        kinds=("Node",),
        needs=("catalog", "pool_nodes"),
        run=resources_offered,
    ),
    Check(
        code="driver-cuda",
        title="Drivers are new enough for the images",
        kinds=("Node",),
        needs=("catalog", "pool_nodes"),
        run=drivers,
    ),
)
