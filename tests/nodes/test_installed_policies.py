"""Who reaches whom with the policies of the three sets installed, seen from inside running pods.

First nothing is installed, and everybody reaches everything: what is closed later is closed by a policy. The
world outside the cluster is played by one node, which answers at the addresses of clouds' metadata, of an
office and of the public internet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.cli.manifests import read_installation, render
from hub_ext.install.deployment import TO_HUB
from hub_ext.install.model import ApiServer, labels_of
from hub_ext.names import LABEL_JOB
from services.job_handoff.manifest.place import build_run_policy
from services.job_handoff.manifest.pod import COMPONENT
from services.job_handoff.settings import HandoffSettings
from services.preflight.scene import merged
from tests.devcluster import host
from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.nodes import chart
from tests.nodes.acting import eventually, run_in, wait_while
from tests.nodes.pods import HELPER, build_namespace
from tests.nodes.reach import Part, addresses, all_reached

SETS = Path(__file__).parents[2] / "helm-values" / "sets"
HUB, RUNS, PULLS, MONITORING = "jupyterhub", "gpu-workspaces-runs", "gpu-workspaces-prepuller", "monitoring"
NODE, OTHER_NODE, OUTSIDE_NODE = "cpu-1", "mig-1", "gpu-1"
USER_PORT = {"notebook-port": 8888}
EVERY_ACCESS = dict.fromkeys(
    (chart.HUB_ACCESS, chart.USER_ACCESS, chart.PROXY_ACCESS, chart.PROXY_API_ACCESS), "true"
)


def user(name: str, namespace: str, *, node: str = NODE) -> Part:
    return Part(name=name, namespace=namespace, labels=chart.LABELS["user"], ports=USER_PORT, node=node)


def run_pod(name: str, run: str, *, node: str = NODE) -> Part:
    labels = {"component": COMPONENT, LABEL_JOB: run}
    return Part(name=name, namespace=RUNS, labels=labels, ports={"dashboard": 8265}, node=node)


def service(name: str) -> Part:
    return Part(name=name, namespace=HUB, labels=labels_of(name) | TO_HUB, ports={"http": 8080})


def other(name: str, namespace: str, port: int, **labels: str) -> Part:
    return Part(name=name, namespace=namespace, labels={"app": name, **labels}, ports={"http": port})


PARTS = {
    part.name: part
    for part in (
        Part(
            name="hub",
            namespace=HUB,
            labels=chart.LABELS["hub"],
            ports={"http": 8081, "idle-culler": 10101, "prepuller": 10102},
        ),
        Part(name="proxy", namespace=HUB, labels=chart.LABELS["proxy"], ports={"http": 8000, "api": 8001}),
        user("ada", HUB),
        user("bob", HUB, node=OTHER_NODE),
        user("ada-of-nlp", "ws-nlp"),
        user("eve-of-nlp", "ws-nlp", node=OTHER_NODE),
        user("bob-of-vision", "ws-vision"),
        service("idle-culler"),
        service("job-handoff"),
        service("prepuller"),
        run_pod("training-0", "training"),
        run_pod("training-1", "training", node=OTHER_NODE),
        run_pod("report-0", "report"),
        other("pull", PULLS, 8080),
        other("prometheus", MONITORING, 9090),
        other("exporter", "gpu-operator", 9400),
        other("operator", "kuberay-operator", 8080),
        other("ingress", "ingress-nginx", 8080),
        # A pod of somebody else's that calls itself all that the chart's policies ask for.
        Part(name="stranger", namespace="elsewhere", labels=EVERY_ACCESS, ports={"http": 8080}),
    )
}

WORLD = {
    "metadata": "169.254.169.254:80",
    "metadata-by-tls": "169.254.169.254:443",
    "task-credentials": "169.254.170.2:80",
    "azure-agent": "168.63.129.16:80",
    "alibaba-metadata": "100.100.100.200:80",
    "office": "172.31.255.1:443",
    "web": "203.0.113.7:443",
    "plain-web": "203.0.113.7:80",
}
"""Addresses outside the cluster; 203.0.113.0/24 is nobody's, and to policies as public as any."""
KUBELET, READ_ONLY, NODE_EXPORTER = 10250, 10255, 9400
OUTSIDE_PORTS = (80, 443, READ_ONLY, NODE_EXPORTER)
NODES = {"kubelet", "kubelet-read-only", "exporter-of-node"}
API = {"api", "api-behind-it"}
NAMES = {"names"}

Reach = Mapping[str, set[str]]
IN_HUB: dict[str, set[str]] = {
    "proxy": {"hub:http", "ada", "bob", *NAMES},
    "ada": {"hub:http", "hub:idle-culler", "proxy:http", "web", *NAMES},
    "bob": {"hub:http", "hub:idle-culler", "proxy:http", "web", *NAMES},
    "ingress": {"proxy:http"},
    "stranger": {"proxy:http"},
}
"""What both sets have in common whose services are processes of the hub."""
TEAM = {"hub:http", "idle-culler", "job-handoff", "web", *NAMES}
WORKSPACES = {"ada", "bob", "ada-of-nlp", "eve-of-nlp", "bob-of-vision"}
SERVICES = {"idle-culler", "job-handoff", "prepuller"}
SERVICE = {"hub:http", *API, *NAMES}
UNFENCED = {"prometheus", "exporter", "operator", "ingress", "stranger"}
"""Pods that none of our policies is about, as targets: who bounds what comes to them is their owner."""
EVERYWHERE = {*UNFENCED, *API, *NAMES, *NODES, "office", "web", "plain-web", "proxy:http", "proxy:api"}
"""What the hub reaches beside workspaces and services: it needs the API server, a database, the provider."""

REACH: Mapping[str, Reach] = {
    "small-cloud": IN_HUB
    | {
        "hub": {*EVERYWHERE, "ada", "bob"},
        "proxy": {*IN_HUB["proxy"], "hub:idle-culler"},
        "prometheus": {"hub:http", "hub:idle-culler", "proxy:http"},
    },
    "research-team": IN_HUB
    | {
        "hub": {*EVERYWHERE, "ada", "bob"},
        "proxy": {*IN_HUB["proxy"], "hub:idle-culler", "hub:prepuller"},
        "prometheus": {"hub:http", "hub:idle-culler", "hub:prepuller", "proxy:http"},
        "pull": set(),
    },
    "enterprise": {
        "hub": {*EVERYWHERE, *WORKSPACES, *SERVICES},
        "proxy": {"hub:http", *WORKSPACES, *SERVICES, *NAMES},
        "ada": {*TEAM, "proxy:http"},
        "ada-of-nlp": TEAM,
        "bob-of-vision": TEAM,
        "idle-culler": {*SERVICE, "prometheus"},
        "job-handoff": {*SERVICE, "web"},
        "prepuller": SERVICE,
        "training-0": {"training-1", "job-handoff", *NAMES},
        "report-0": {"job-handoff", *NAMES},
        "pull": set(),
        "prometheus": {"hub:http", *SERVICES, "proxy:http"},
        "operator": {"training-0", "training-1", "proxy:http"},
        "ingress": {"proxy:http"},
        "stranger": {"proxy:http"},
    },
}
"""Of each set, what each part reaches, and nothing else."""
ONLY_ENTERPRISE = {
    *SERVICES,
    "ada-of-nlp",
    "eve-of-nlp",
    "bob-of-vision",
    "training-0",
    "training-1",
    "report-0",
}
ABSENT = {
    "small-cloud": {*ONLY_ENTERPRISE, "pull"},
    "research-team": ONLY_ENTERPRISE,
    "enterprise": set[str](),
}
"""Pods that stand for nothing in a set, which has no such part."""
NO_POLICY = {"prometheus", "operator", "ingress", "stranger"}
"""Parts that may go where they like; they are asked what they reach of the installation."""


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[None]:
    """Everything outside the cluster, on one node; the others find it there."""
    node = cluster.node(OUTSIDE_NODE)
    found = sorted({where.partition(":")[0] for where in WORLD.values()})
    clients = [cluster.node(name).init_pid for name in sorted({part.node for part in PARTS.values()})]
    ports = [str(port) for port in OUTSIDE_PORTS]
    listener = node.popen("world", [sys.executable, Path(__file__).with_name("listener.py"), *ports])
    host.ip_batch([f"address add {one}/32 dev lo" for one in found], namespace_of=node.init_pid)
    for pid in clients:
        host.ip_batch([f"route add {one}/32 via {node.address}" for one in found], namespace_of=pid)
    yield
    for pid in clients:
        host.ip_batch([f"route del {one}/32 via {node.address}" for one in found], namespace_of=pid)
    host.ip_batch([f"address del {one}/32 dev lo" for one in found], namespace_of=node.init_pid)
    listener.stop()


@pytest.fixture(scope="module")
def targets(cluster: Cluster, world: None) -> Iterator[dict[str, str]]:
    """All pods, ready, and all that they may try to reach: `address:port` by name."""
    namespaces = sorted({part.namespace for part in PARTS.values()})
    cluster.apply(*map(build_namespace, namespaces))
    wait_while(cluster, lambda: _without_account(cluster, namespaces), what="accounts of namespaces")
    image = Registry(cluster).publish_variant(HELPER, mark="policies")
    cluster.apply(*(part.build(image) for part in PARTS.values()))
    found = addresses(cluster, PARTS.values())
    pods = {
        f"{part.name}:{name}" if part.name in {"hub", "proxy"} else part.name: f"{found[part.name]}:{port}"
        for part in PARTS.values()
        for name, port in part.ports.items()
    }
    node = cluster.node(OUTSIDE_NODE).address
    yield {
        **pods,
        **WORLD,
        "kubelet": f"{node}:{KUBELET}",
        "kubelet-read-only": f"{node}:{READ_ONLY}",
        "exporter-of-node": f"{node}:{NODE_EXPORTER}",
        "api": f"{cluster.addresses.api_service}:443",
        "api-behind-it": cluster.server.removeprefix("https://"),
        "names": f"{cluster.addresses.dns}:53",
    }
    cluster.kubectl("delete", "namespace", "--wait=false", *namespaces)


def _without_account(cluster: Cluster, namespaces: list[str]) -> str | None:
    accounts = cluster.get("/api/v1/serviceaccounts")["items"]
    there = {one["metadata"]["namespace"] for one in accounts if one["metadata"]["name"] == "default"}
    return ", ".join(sorted(set(namespaces) - there)) or None


def build_installed(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    """Build the policies of a set, and those of its chart; only where the API server is was filled in."""
    path = SETS / f"{name}.yaml"
    api = ApiServer(addresses=(f"{cluster.host_address}/32",), ports=(cluster.port("kube-apiserver"),))
    installation = read_installation(path).model_copy(update={"api_server": api})
    manifests = render(installation, path.parent, "manifests")
    made = [one for one in manifests if one["kind"] == "NetworkPolicy"]
    if "job-handoff" in installation.services:
        settings = {"catalog": "catalog.yaml", **installation.services["job-handoff"].settings}
        handoff = HandoffSettings.model_validate(settings, by_alias=True, by_name=False)
        made.append(build_run_policy(handoff, "training"))
    (rendered,) = render(installation, path.parent, "values")
    files = [path.parent / file for file in installation.values if not file.startswith("../rendered/")]
    layers = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    return [*made, *chart.build_policies(merged([*layers, rendered]), HUB)]


@contextmanager
def installed(cluster: Cluster, name: str) -> Iterator[None]:
    policies = build_installed(cluster, name)
    try:
        cluster.apply(*policies)
        yield
    finally:
        for namespace in sorted({one["metadata"]["namespace"] for one in policies}):
            cluster.kubectl("delete", "networkpolicies", "--all", f"--namespace={namespace}")


def expect(cluster: Cluster, expected: Reach, targets: Mapping[str, Mapping[str, str]]) -> None:
    """Wait until each part reaches what it should, and nothing else: rules follow policies and pods."""
    parts = [PARTS[name] for name in expected]

    def missing() -> str | None:
        try:
            found = all_reached(cluster, parts, targets)
        except CommandFailedError as error:  # a node that is busy answers the next time
            return error.output
        wrong = [
            *(f"{name} reaches {one}" for name in expected for one in sorted(found[name] - expected[name])),
            *(
                f"{name} cannot reach {one}"
                for name in expected
                for one in sorted(expected[name] - found[name])
            ),
        ]
        return "; ".join(wrong) or None

    wait_while(cluster, missing, what="each to reach what it should")


def of_part(name: str, targets: Mapping[str, str]) -> dict[str, str]:
    """The targets that a part is asked about: all but itself."""
    return {one: where for one, where in targets.items() if one.partition(":")[0] != name}


def test_without_policies_everybody_reaches_everything(cluster: Cluster, targets: dict[str, str]) -> None:
    asked = {name: of_part(name, targets) for name in PARTS}
    expect(cluster, {name: set(one) for name, one in asked.items()}, asked)


@pytest.mark.parametrize("name", REACH)
def test_with_a_set_s_policies_each_reaches_what_it_has_to(
    cluster: Cluster, targets: dict[str, str], name: str
) -> None:
    reach = REACH[name]
    present = {one: where for one, where in targets.items() if one not in ABSENT[name]}
    theirs = {*UNFENCED, *WORLD, *NODES, *API, *NAMES}
    asked = {
        part: {
            one: where
            for one, where in of_part(part, present).items()
            if not (part in NO_POLICY and one in theirs)
        }
        for part in reach
    }
    assert all(reach[part] <= set(asked[part]) for part in reach)
    with installed(cluster, name):
        expect(cluster, reach, asked)
        answer = eventually(
            cluster,
            lambda: run_in(cluster, HUB, "ada", "nslookup kubernetes.default.svc.cluster.local"),
            what="a workspace to resolve a name",
        )
        assert cluster.addresses.api_service in answer
