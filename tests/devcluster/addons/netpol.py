"""kube-router on every node, which enforces NetworkPolicies beside kube-proxy and does nothing else."""

from __future__ import annotations

from tests.devcluster.cluster import Cluster
from tests.devcluster.node import Node

PROGRAMS = ("kube-router",)
TOOLS = ("ipset",)


def install_on_node(cluster: Cluster, node: Node) -> None:
    """Start it when the node has its address, without which it gives up; its rules end with the node."""
    cluster.wait_for(f"node/{node.name}", f"jsonpath={{.status.addresses[0].address}}={node.address}")
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
