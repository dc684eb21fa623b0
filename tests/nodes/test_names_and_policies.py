"""Cluster DNS, and NetworkPolicies that are enforced."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.nodes.acting import ask, eventually, fetch, run_in, wait_until_ready, wait_while, with_image
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
    """Ask the cluster's name service until it answers."""
    return eventually(
        cluster,
        lambda: run_in(cluster, namespace, "client", f"nslookup {name}"),
        what=f"{name} to be resolved",
    )


def failure(cluster: Cluster, namespace: str, url: str) -> str:
    """Why the client gets no answer from a URL, or an empty string if it gets one."""
    try:
        fetch(cluster, namespace, "client", url)
    except CommandFailedError as error:
        return error.output
    return ""


def policy(name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def test_services_have_names(cluster: Cluster, namespace: str, server: str) -> None:
    assert ask(cluster, namespace, "client", f"http://{server}/") == "web"
    assert ask(cluster, namespace, "client", f"http://{server}.{namespace}.svc.cluster.local/") == "web"


def test_the_api_server_has_its_name(cluster: Cluster, namespace: str, server: str) -> None:
    answer = resolve(cluster, namespace, "kubernetes.default.svc.cluster.local")
    assert cluster.addresses.api_service in answer


def test_an_unknown_name_is_unknown(cluster: Cluster, namespace: str, server: str) -> None:
    url = f"http://nobody.{namespace}.svc.cluster.local/"

    def missing() -> str | None:
        said = failure(cluster, namespace, url)
        return None if "bad address" in said else said or "somebody answers"

    wait_while(cluster, missing, what="the name to be unknown")


def test_denied_traffic_stops_and_allowed_traffic_flows(
    cluster: Cluster, namespace: str, server: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/web"
    url = f"http://{cluster.get(path)['status']['podIP']}:{PORT}/"
    assert ask(cluster, namespace, "client", url) == "web"
    cluster.apply(policy("deny", namespace, {"podSelector": {}, "policyTypes": ["Ingress"]}))
    wait_while(
        cluster, lambda: None if failure(cluster, namespace, url) else "it answers", what="traffic to stop"
    )
    assert ask(cluster, namespace, "web", f"http://127.0.0.1:{PORT}/") == "web", "the server itself is well"
    allowed = {"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": PORT}]}
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"], "ingress": [allowed]}
    cluster.apply(policy("allow-client", namespace, spec))
    assert ask(cluster, namespace, "client", url) == "web"
