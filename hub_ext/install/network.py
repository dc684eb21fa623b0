"""What NetworkPolicies are made of.

Addresses that clouds give their metadata, and private ranges, are left out of what is public. The network
plugin has to enforce policies; `gpu-workspaces preflight` cannot see that.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..render.target import MANAGED_BY

NOT_PUBLIC: Final = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)
"""Private ranges, link-local addresses with the metadata of clouds, and Azure's own service address."""
USERS: Final = {"app": "jupyterhub", "component": "singleuser-server"}
HUB: Final = {"app": "jupyterhub", "component": "hub"}
PROXY: Final = {"app": "jupyterhub", "component": "proxy"}
HUB_PORT: Final = 8081
USER_PORT: Final = 8888
SERVICE_PORT: Final = 8080
_NAMESPACE: Final = "kubernetes.io/metadata.name"


def build_policy(
    name: str,
    namespace: str,
    *,
    pods: dict[str, str],
    ingress: Iterable[dict[str, Any]] = (),
    egress: Iterable[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Build a policy that denies everything else in both directions; empty `pods` selects all."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(MANAGED_BY)},
        "spec": {
            "podSelector": {"matchLabels": pods} if pods else {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": list(ingress),
            "egress": list(egress),
        },
    }


def from_pods(labels: dict[str, str], *ports: int, namespace: str = "") -> dict[str, Any]:
    """Accept from pods; in the policy's own namespace, if none is named."""
    return {"from": [_peer(labels, namespace)]} | _ports(ports)


def to_pods(labels: dict[str, str], *ports: int, namespace: str = "") -> dict[str, Any]:
    """Allow to pods; in the policy's own namespace, if none is named."""
    return {"to": [_peer(labels, namespace)]} | _ports(ports)


def to_names() -> dict[str, Any]:
    """Allow to look up names."""
    ports = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {"to": [_peer({}, "kube-system")], "ports": ports}


def to_public(*ports: int) -> dict[str, Any]:
    """Allow to public addresses."""
    block = {"cidr": "0.0.0.0/0", "except": list(NOT_PUBLIC)}
    return {"to": [{"ipBlock": block}]} | _ports(ports)


def to_api_server() -> dict[str, Any]:
    """Allow to the ports of API servers, which no selector can name."""
    return _ports((443, 6443))


def _peer(labels: dict[str, str], namespace: str) -> dict[str, Any]:
    peer: dict[str, Any] = {"podSelector": {"matchLabels": labels} if labels else {}}
    if namespace:
        peer["namespaceSelector"] = {"matchLabels": {_NAMESPACE: namespace}}
    return peer


def _ports(ports: Iterable[int]) -> dict[str, Any]:
    found = [{"protocol": "TCP", "port": port} for port in ports]
    return {"ports": found} if found else {}
