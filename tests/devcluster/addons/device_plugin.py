"""NVIDIA's device plugin and feature discovery on every node of the cluster file that has `gpus`."""

from __future__ import annotations

from collections.abc import Callable

from tests.devcluster.cluster import Cluster
from tests.devcluster.gpu.node import DISCOVERY, MPS_DAEMON, NVML_HEADER, PLUGIN, GpuNode
from tests.devcluster.node import Node

PROGRAMS = (PLUGIN, DISCOVERY, MPS_DAEMON, NVML_HEADER)
TOOLS = ("gcc",)


def install_on_node(cluster: Cluster, node: Node) -> None:
    """Put the cards of the cluster file into a node, label it, and start the plugin."""
    if node.spec.gpus is not None:
        gpus = GpuNode(cluster, node)
        gpus.start()
        gpus.label()


def install(cluster: Cluster) -> Callable[[], None]:
    """Wait until every GPU node offers its GPUs."""

    def ready() -> None:
        for node in cluster.nodes.values():
            if node.spec.gpus is not None:
                GpuNode(cluster, node).wait_until_offered()

    return ready
