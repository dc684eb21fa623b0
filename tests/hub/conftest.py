"""One cluster of size `control` and one hub for all tests here; each test has users of its own."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hub_ext.rights import HUB, Where
from tests.devcluster.kube import KubeCluster
from tests.devcluster.pytest_plugin import control_cluster, namespace_name
from tests.hub.harness import IS_5, Hub, notebook_server
from tests.hub.volumes import build_volume

__all__ = ["control_cluster"]

FOLDER = Path(__file__).parent
CATALOG = FOLDER / "catalog.yaml"
TIMEOUT_SECONDS = 600
"""The first test waits for the cluster and the hub."""

collect_ignore = ["test_restore.py"] if IS_5 else []
"""It starts hubs of both ends of the range itself, so once is enough."""

HOMES = 40
"""Volumes for homes: more than tests start workspaces."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(scope="session")
def cluster(control_cluster: KubeCluster) -> KubeCluster:
    return control_cluster


@pytest.fixture(scope="session")
def homes(cluster: KubeCluster) -> Iterator[None]:
    """A class of volumes that exist in the API only, as the machines do."""
    names = [f"hub-tests-{secrets.token_hex(4)}-{number}" for number in range(HOMES)]
    cluster.apply(*(build_volume(name, "hub-tests") for name in names))
    yield
    cluster.kubectl("delete", "persistentvolume", "--wait=false", *names)


@pytest.fixture(scope="session")
def hub_namespace(cluster: KubeCluster) -> Iterator[str]:
    """A namespace with the rights that a hub has to have, and no more: the chart's own gives secrets too."""
    name = namespace_name("hub")
    rules = [
        {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
        for rule in HUB.rules
        if rule.where is Where.WORKSPACES and not rule.optional
    ]
    rbac = "rbac.authorization.k8s.io"
    place = {"name": "hub", "namespace": name}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": place, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": place,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "hub"},
            "subjects": [{"kind": "ServiceAccount", **place}],
        },
    )
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def hub_kubeconfig(
    cluster: KubeCluster, hub_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The kubeconfig of the hub's ServiceAccount."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--minify", "--output=json"))
    token = cluster.kubectl("create", "token", "hub", f"--namespace={hub_namespace}", "--duration=2h").strip()
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = tmp_path_factory.mktemp("hub-kubeconfig") / "config"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="session")
def notebook_port() -> Iterator[int]:
    with notebook_server() as port:
        yield port


@pytest.fixture(scope="session")
def hub(
    hub_kubeconfig: Path,
    hub_namespace: str,
    homes: None,
    notebook_port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Hub]:
    """The hub that most tests share. It exits at the third failure in a row, whosever it is."""
    hub = Hub(
        tmp_path_factory.mktemp("hub"),
        kubeconfig=hub_kubeconfig,
        namespace=hub_namespace,
        catalog=CATALOG,
        notebook_port=notebook_port,
    )
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


@pytest.fixture
def new_user(hub: Hub, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Make users that no other test has, in the given groups."""

    def make(*groups: str) -> str:
        test = re.sub(r"[^a-z]+", "-", request.node.originalname.removeprefix("test_").lower())[:20]
        name = f"{test.strip('-')}-{secrets.token_hex(3)}"
        hub.put_in_groups(name, *groups)
        return name

    return make


@pytest.fixture
def member(new_user: Callable[..., str]) -> str:
    """A user in the team that may start all."""
    return new_user("nlp")


@pytest.fixture
def outsider(new_user: Callable[..., str]) -> str:
    """A user in no team."""
    return new_user()
