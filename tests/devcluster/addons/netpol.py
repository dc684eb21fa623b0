"""kube-router on every node, which enforces NetworkPolicies beside kube-proxy and does nothing else."""

from __future__ import annotations

from tests.devcluster.cluster import Cluster
from tests.devcluster.node import Node

PROGRAMS = ("kube-router",)
TOOLS = ("ipset",)


def install_on_node(cluster: Cluster, node: Node) -> None:
    """Start it; its rules end with the node's namespace."""
    node.popen(
        "kube-router",
        [
            cluster.programs["kube-router"],
            f"--kubeconfig={cluster.kubeconfig}",
            f"--hostname-override={node.name}",
            f"--service-cluster-ip-range={cluster.addresses.services}",
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            "--enable-cni=false",
        ],
    )
