"""Nodes are real: kubelets that register, containers that run, a network that carries."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.devcluster.answering import until_answering
from tests.devcluster.api import is_ready
from tests.devcluster.cluster import Cluster
from tests.devcluster.control import Verb
from tests.devcluster.waiting import PATIENCE_SECONDS, until
from tests.nodes.acting import ask, wait_while
from tests.nodes.pods import HELPER, PORT, RESTRICTED, build_pod, build_server


@pytest.fixture(scope="module", autouse=True)
def _helper_on_nodes(cluster: Cluster) -> None:
    layout = build_helper()
    for node in cluster.nodes.values():
        node.import_image(layout)


def build_helper() -> Any:
    from tests.devcluster import build

    return build.ensure_image(HELPER)


@pytest.fixture
def restricted(cluster: Cluster, namespace: str) -> str:
    """The test's namespace, where only careful pods get in."""
    cluster.kubectl("label", "namespace", namespace, *(f"{key}={value}" for key, value in RESTRICTED.items()))
    return namespace


def start(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    """Create objects and wait until the pods among them are Ready."""
    cluster.apply(*objects)
    for item in objects:
        if item["kind"] == "Pod":
            cluster.wait_for(f"pod/{item['metadata']['name']}", "condition=Ready", namespace=namespace)


def pod_address(cluster: Cluster, namespace: str, pod: str) -> str:
    return str(cluster.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")["status"]["podIP"])


def service_address(cluster: Cluster, namespace: str, service: str) -> str:
    return str(cluster.get(f"/api/v1/namespaces/{namespace}/services/{service}")["spec"]["clusterIP"])


def test_each_node_is_ready_and_has_what_its_file_says(cluster: Cluster) -> None:
    nodes = {node["metadata"]["name"]: node for node in cluster.get("/api/v1/nodes")["items"]}
    assert set(nodes) == set(cluster.nodes)
    for name, node in cluster.nodes.items():
        seen = nodes[name]
        assert is_ready(seen), name
        assert seen["status"]["nodeInfo"]["kubeletVersion"].startswith(f"v{cluster.spec.kubernetes}.")
        assert seen["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
        assert {"type": "InternalIP", "address": node.address} in seen["status"]["addresses"]
        assert node.spec.labels.items() <= seen["metadata"]["labels"].items()
        taints = {(taint["key"], taint["effect"]) for taint in seen["spec"].get("taints", [])}
        assert taints == {(taint.key, taint.effect) for taint in node.spec.taints}


def test_a_restricted_pod_runs_on_each_node(cluster: Cluster, restricted: str) -> None:
    pods = [build_pod(f"on-{name}", restricted, node=name) for name in cluster.nodes]
    start(cluster, restricted, *pods)
    for name in cluster.nodes:
        who = cluster.kubectl("exec", f"--namespace={restricted}", f"on-{name}", "--", "id", "-u")
        assert who.strip() == "1000"


def test_pods_reach_each_other_across_nodes(cluster: Cluster, restricted: str) -> None:
    first, *_, last = cluster.nodes
    start(
        cluster,
        restricted,
        *build_server("server", restricted, node=first),
        build_pod("client", restricted, node=last),
    )
    address = pod_address(cluster, restricted, "server")
    assert address.startswith(cluster.node(first).pod_cidr.rpartition(".")[0])
    assert ask(cluster, restricted, "client", f"http://{address}:{PORT}/") == "server"


def test_a_service_is_reached_from_pods_and_from_the_host(cluster: Cluster, restricted: str) -> None:
    *_, last = cluster.nodes
    clients = [build_pod(f"client-{name}", restricted, node=name) for name in cluster.nodes]
    start(cluster, restricted, *build_server("server", restricted, node=last), *clients)
    url = f"http://{service_address(cluster, restricted, 'server')}/"
    for name in cluster.nodes:
        assert ask(cluster, restricted, f"client-{name}", url) == "server"
    until_answering(url, what="the service to answer the host", check=cluster.check)
    assert httpx.get(url, trust_env=False, timeout=PATIENCE_SECONDS).text.strip() == "server"


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.client_address[0].encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host_server(cluster: Cluster) -> Iterator[str]:
    """URL of a server on the host that answers with the address that asked."""
    with http.server.ThreadingHTTPServer((cluster.host_address, 0), Hello) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{cluster.host_address}:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_pods_reach_the_host_with_their_own_address(
    cluster: Cluster, restricted: str, host_server: str
) -> None:
    first, *_ = cluster.nodes
    start(cluster, restricted, build_pod("client", restricted, node=first))
    assert ask(cluster, restricted, "client", host_server) == pod_address(cluster, restricted, "client")


def test_too_much_memory_kills_the_container(cluster: Cluster, restricted: str) -> None:
    first, *_ = cluster.nodes
    command = ["sh", "-c", "tail /dev/zero"]
    pod = build_pod("hungry", restricted, node=first, command=command)
    pod["spec"]["restartPolicy"] = "Never"
    cluster.apply(pod)
    cluster.wait_for("pod/hungry", "jsonpath={.status.phase}=Failed", namespace=restricted)
    seen = cluster.get(f"/api/v1/namespaces/{restricted}/pods/hungry")
    assert seen["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_logs_of_a_container_are_read_through_the_api(cluster: Cluster, restricted: str) -> None:
    first, *_ = cluster.nodes
    start(
        cluster,
        restricted,
        build_pod("talker", restricted, node=first, command=["sh", "-c", "echo hello; exec sleep infinity"]),
    )

    def missing() -> str | None:
        said = cluster.kubectl("logs", f"--namespace={restricted}", "talker").strip()
        return None if said == "hello" else f"the log is {said!r}"

    wait_while(cluster, missing, what="the container to speak")


def test_a_killed_kubelet_makes_its_node_not_ready_until_it_is_started_again(cluster: Cluster) -> None:
    *_, name = cluster.nodes

    def readiness() -> bool:
        return is_ready(cluster.get(f"/api/v1/nodes/{name}"))

    cluster.control(Verb.KILL, f"{name}/kubelet")
    until(lambda: "it is Ready" if readiness() else None, what=f"{name} to be lost")
    cluster.control(Verb.START, f"{name}/kubelet")
    until(lambda: None if readiness() else "it is not Ready", what=f"{name} to be back")
    cluster.check()
