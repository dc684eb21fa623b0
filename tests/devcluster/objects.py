"""Objects that the supervisor itself creates in a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.devcluster.addresses import Addresses
from tests.devcluster.spec import KwokPool, NodeSpec, Taint

KWOK_ANNOTATION = "kwok.x-k8s.io/node"
HOSTNAME_LABEL = "kubernetes.io/hostname"


def build_node(spec: NodeSpec, addresses: Addresses, index: int) -> dict[str, Any]:
    """A Node made before its kubelet registers: labels that a kubelet may not give itself are there at once,
    and no pod gets in before the taints."""
    node = _node(spec.name, spec.labels, spec.taints)
    pods = str(addresses.node_pods(index))
    node["spec"] |= {"podCIDR": pods, "podCIDRs": [pods]}
    return node


def build_kwok_nodes(pool: KwokPool) -> Iterator[dict[str, Any]]:
    """The machines of a pool."""
    for number in range(pool.count):
        node = _node(f"{pool.name}-{number}", pool.labels, pool.taints)
        node["metadata"]["annotations"] = {KWOK_ANNOTATION: "fake"}
        node["metadata"]["labels"] |= {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "type": "kwok",
        }
        node["status"] = {"capacity": pool.capacity, "allocatable": pool.capacity}
        yield node


def _node(name: str, labels: Mapping[str, str], taints: Sequence[Taint]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME_LABEL: name, **labels}},
        "spec": {"taints": [taint.model_dump() for taint in taints]},
    }
