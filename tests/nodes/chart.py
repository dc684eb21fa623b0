"""The NetworkPolicies that the chart of Zero to JupyterHub makes of values, and the labels of its pods.

The chart is not ours to keep. This says again what its templates `hub/netpol.yaml`, `proxy/netpol.yaml` and
`singleuser/netpol.yaml` say (4.4 and what is to be 5.0); with `Z2JH_CHART` set a test compares both.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HUB_ACCESS = "hub.jupyter.org/network-access-hub"
USER_ACCESS = "hub.jupyter.org/network-access-singleuser"
PROXY_ACCESS = "hub.jupyter.org/network-access-proxy-http"
PROXY_API_ACCESS = "hub.jupyter.org/network-access-proxy-api"
RELEASE = "hub"
METADATA = "169.254.169.254/32"
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
KUBE_SYSTEM = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}

SERVER_RULES = {
    "cloudMetadataServer": True,
    "dnsPortsCloudMetadataServer": True,
    "dnsPortsKubeSystemNamespace": True,
    "dnsPortsPrivateIPs": True,
    "nonPrivateIPs": True,
    "privateIPs": True,
}
"""Defaults of `egressAllowRules` for hub and proxy."""
USER_RULES = SERVER_RULES | {"cloudMetadataServer": False, "privateIPs": False}
"""Those for workspaces."""

Rules = Mapping[str, Any]


def labels(component: str, *access: str) -> dict[str, str]:
    """Labels of the chart's pods: what they are, and whom they may speak to."""
    return {"app": "jupyterhub", "component": component, "release": RELEASE} | dict.fromkeys(access, "true")


LABELS = {
    "hub": labels("hub", PROXY_API_ACCESS, PROXY_ACCESS, USER_ACCESS),
    "proxy": labels("proxy", HUB_ACCESS, USER_ACCESS),
    "user": labels("singleuser-server", HUB_ACCESS),
}


def build_policies(values: Mapping[str, Any], namespace: str) -> list[dict[str, Any]]:
    """Build the policies of hub, proxy and workspaces."""
    hub = values["hub"].get("networkPolicy", {})
    proxy = values["proxy"]["chp"].get("networkPolicy", {})
    user = values["singleuser"].get("networkPolicy", {})
    return [
        _policy(
            "hub",
            namespace,
            ingress=[*_labelled("http", HUB_ACCESS, hub), *hub.get("ingress", [])],
            egress=[_to("proxy", 8001), _to("singleuser-server", 8888), *_egress(hub, SERVER_RULES)],
        ),
        _policy(
            "proxy",
            namespace,
            ingress=[
                {"ports": [{"port": port} for port in proxy.get("allowedIngressPorts", ["http", "https"])]},
                *_labelled("http", PROXY_ACCESS, proxy),
                *_labelled("api", PROXY_API_ACCESS, proxy),
                *proxy.get("ingress", []),
            ],
            egress=[_to("hub", 8081), _to("singleuser-server", 8888), *_egress(proxy, SERVER_RULES)],
        ),
        _policy(
            "singleuser",
            namespace,
            component="singleuser-server",
            ingress=[*_labelled("notebook-port", USER_ACCESS, user), *user.get("ingress", [])],
            egress=[
                _to("hub", 8081),
                _to("proxy", 8000),
                _to("autohttps", 8080, 8443),
                *_egress(user, USER_RULES),
            ],
        ),
    ]


def _policy(
    name: str,
    namespace: str,
    *,
    ingress: list[dict[str, Any]],
    egress: list[dict[str, Any]],
    component: str = "",
) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "podSelector": {"matchLabels": labels(component or name)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }


def _to(component: str, *ports: int) -> dict[str, Any]:
    peer = {"podSelector": {"matchLabels": labels(component)}}
    return {"to": [peer], "ports": [{"port": port} for port in ports]}


def _labelled(port: str, access: str, policy: Rules) -> list[dict[str, Any]]:
    peer = {"matchLabels": {access: "true"}}
    peers: list[dict[str, Any]] = [{"podSelector": peer}]
    if policy.get("interNamespaceAccessLabels") == "accept":
        peers = [{"podSelector": peer, "namespaceSelector": {"matchLabels": {}}}, {"namespaceSelector": peer}]
    return [{"ports": [{"port": port}], "from": peers}]


def _egress(policy: Rules, defaults: Mapping[str, bool]) -> list[dict[str, Any]]:
    wanted = {**defaults, **policy.get("egressAllowRules", {})}
    names = [
        *([_block(METADATA)] if wanted["dnsPortsCloudMetadataServer"] else []),
        *([KUBE_SYSTEM] if wanted["dnsPortsKubeSystemNamespace"] else []),
        *([_block(network) for network in PRIVATE] if wanted["dnsPortsPrivateIPs"] else []),
    ]
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
    made: list[dict[str, Any]] = [{"ports": ports, "to": names}] if names else []
    if wanted["nonPrivateIPs"]:
        made.append({"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [*PRIVATE, METADATA]}}]})
    if wanted["privateIPs"]:
        made.append({"to": [_block(network) for network in PRIVATE]})
    if wanted["cloudMetadataServer"]:
        made.append({"to": [_block(METADATA)]})
    return [*made, *policy.get("egress", [])]


def _block(network: str) -> dict[str, Any]:
    return {"ipBlock": {"cidr": network}}
