"""Cluster DNS, and NetworkPolicies that are enforced."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.nodes.acting import run_in, wait_until_ready, wait_while, with_image
from tests.nodes.pods import HELPER, PORT, build_pod, build_server

SERVER_NODE, CLIENT_NODE = "gpu-1", "cpu-1"


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    return Registry(cluster).publish_variant(HELPER, mark="names")


@pytest.fixture
def server(cluster: Cluster, namespace: str, image: str) -> str:
    """Name of a Service in the test's namespace with a pod behind it, beside a pod `client`."""
    pod, service = build_server("web", namespace, node=SERVER_NODE)
    client = build_pod("client", namespace, node=CLIENT_NODE)
    cluster.apply(with_image(pod, image), service, with_image(client, image))
    wait_until_ready(cluster, namespace, "web", "client")
    return "web"


def resolve(cluster: Cluster, namespace: str, name: str) -> str:
    return run_in(cluster, namespace, "client", f"nslookup {name}")


def fetch(cluster: Cluster, namespace: str, url: str) -> str:
    # Debian's busybox crashes when wget is given its own time limit.
    return run_in(cluster, namespace, "client", f"timeout 3 wget -q -O- {url}")


def is_open(cluster: Cluster, namespace: str, url: str) -> bool:
    """Whether a pod gets an answer; a denied one is refused or times out."""
    try:
        return fetch(cluster, namespace, url) == "web"
    except CommandFailedError:
        return False


def policy(name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def test_services_have_names(cluster: Cluster, namespace: str, server: str) -> None:
    assert fetch(cluster, namespace, f"http://{server}/") == "web"
    assert fetch(cluster, namespace, f"http://{server}.{namespace}.svc.cluster.local/") == "web"


def test_the_api_server_has_its_name(cluster: Cluster, namespace: str, server: str) -> None:
    answer = resolve(cluster, namespace, "kubernetes.default.svc.cluster.local")
    assert cluster.addresses.api_service in answer


def test_an_unknown_name_is_unknown(cluster: Cluster, namespace: str, server: str) -> None:
    with pytest.raises(CommandFailedError) as error:
        fetch(cluster, namespace, f"http://nobody.{namespace}.svc.cluster.local/")
    assert "bad address" in error.value.output


def test_denied_traffic_stops_and_allowed_traffic_flows(
    cluster: Cluster, namespace: str, server: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/web"
    url = f"http://{cluster.get(path)['status']['podIP']}:{PORT}/"
    assert is_open(cluster, namespace, url)
    cluster.apply(policy("deny", namespace, {"podSelector": {}, "policyTypes": ["Ingress"]}))
    wait_while(
        cluster, lambda: "it answers" if is_open(cluster, namespace, url) else None, what="traffic to stop"
    )
    allowed = {"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": PORT}]}
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"], "ingress": [allowed]}
    cluster.apply(policy("allow-client", namespace, spec))
    wait_while(
        cluster, lambda: None if is_open(cluster, namespace, url) else "no answer", what="traffic to flow"
    )
