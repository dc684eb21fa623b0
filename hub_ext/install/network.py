"""What NetworkPolicies are made of.

Addresses that clouds give their metadata, and private ranges, are left out of what is public. The network
plugin has to enforce policies; `gpu-workspaces preflight` cannot see that.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from ..render.target import MANAGED_BY

METADATA: Final = ("100.100.100.200/32", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.0/24")
"""Where clouds tell machines their rights: Alibaba, Azure, all others by link-local ones, Oracle of old."""
NOT_PUBLIC: Final = ("10.0.0.0/8", "100.64.0.0/10", *METADATA, "172.16.0.0/12", "192.168.0.0/16")
"""Private ranges too."""
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


def to_names(servers: Iterable[str] = ()) -> dict[str, Any]:
    """Allow to look up names, in `kube-system` and at further networks."""
    ports = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {"to": [_peer({}, "kube-system"), *_blocks(servers)], "ports": ports}


def to_all_but_metadata() -> dict[str, Any]:
    """Allow to all addresses but those by which a cloud gives its machines their rights."""
    return {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": list(METADATA)}}]}


def to_public(*ports: int, but: Iterable[str] = ()) -> dict[str, Any]:
    """Allow to public addresses, less some networks; of version 6 to none."""
    less = [one for one in but if ip_network(one).version == 4 and not _covered(one)]
    block = {"cidr": "0.0.0.0/0", "except": [*NOT_PUBLIC, *less]}
    return {"to": [{"ipBlock": block}]} | _ports(ports)


def _covered(network: str) -> bool:
    """Say whether a network of version 4 is none of the public ones anyway."""
    return any(IPv4Network(network).subnet_of(IPv4Network(one)) for one in NOT_PUBLIC)


def to_api_server(addresses: Iterable[str], ports: Iterable[int]) -> dict[str, Any]:
    """Allow to API servers, which no selector can name; to their ports everywhere, if no address is known."""
    return ({"to": blocks} if (blocks := _blocks(addresses)) else {}) | _ports(ports)


def _blocks(networks: Iterable[str]) -> list[dict[str, Any]]:
    return [{"ipBlock": {"cidr": network}} for network in networks]


def _peer(labels: dict[str, str], namespace: str) -> dict[str, Any]:
    peer: dict[str, Any] = {"podSelector": {"matchLabels": labels} if labels else {}}
    if namespace:
        peer["namespaceSelector"] = {"matchLabels": {_NAMESPACE: namespace}}
    return peer


def _ports(ports: Iterable[int]) -> dict[str, Any]:
    found = [{"protocol": "TCP", "port": port} for port in ports]
    return {"ports": found} if found else {}
