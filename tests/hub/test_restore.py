"""Homes and workspaces over an upgrade of JupyterHub, a roll back with the saved database, and its loss."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.cli import main
from tests import matrix
from tests.devcluster.kube import KubeCluster
from tests.devcluster.pytest_plugin import namespace, namespace_name
from tests.devcluster.waiting import until
from tests.guide import block_with
from tests.hub.harness import SPAWN_SECONDS, Hub
from tests.hub.volumes import build_volume

__all__ = ["namespace"]

CLASS = "restored"
USER, SERVER = "hub.jupyter.org/username", "hub.jupyter.org/servername"
ADA, OLD_HOME = "ada@example.org", "claim-ada-40example-2eorg"
"""Somebody whose home was made by KubeSpawner 6."""
BOB, EVE, NEW = "bob", "eve@apart", "new"
HOMES = 6


def build_catalog(team_namespace: str) -> dict[str, Any]:
    ref = f"registry.example.com/base@sha256:{'a' * 64}"
    resources = {"cpu": "100m", "memory": "64Mi"}
    profile = {"name": "cpu", "version": 1, "displayName": "Notebook", "images": ["base"]}
    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {"base": {"ref": ref, "displayName": "Base"}},
        "teams": {"apart": {"groups": ["apart"], "namespace": team_namespace}, "all": {"groups": ["all"]}},
        "defaults": {"storage": {"home": {"class": CLASS, "size": "1Gi"}}},
        "profiles": [{**profile, "resources": resources}],
    }


def build_old_home(namespace: str) -> dict[str, Any]:
    """Build a home as KubeSpawner 6 did."""
    labels = {"component": "singleuser-storage", USER: "ada-40example-2eorg"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": OLD_HOME,
            "namespace": namespace,
            "labels": labels,
            "annotations": {USER: ADA},
        },
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


class Places:
    """What is in the namespaces of workspaces."""

    def __init__(self, cluster: KubeCluster, *namespaces: str) -> None:
        self._cluster = cluster
        self.namespaces = namespaces

    def _all(self, resource: str) -> Iterator[dict[str, Any]]:
        for name in self.namespaces:
            yield from self._cluster.get(f"/api/v1/namespaces/{name}/{resource}")["items"]

    def homes(self) -> set[tuple[str, str]]:
        """Namespaces and names of all claims."""
        claims = self._all("persistentvolumeclaims")
        return {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in claims}

    def pods(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Pods of all workspaces, by user and server."""
        notes = ((one, one["metadata"]["annotations"]) for one in self._all("pods"))
        return {(note[USER], note.get(SERVER, "")): one for one, note in notes}

    def uid(self, user: str, server: str = "") -> str:
        uid: str = self.pods()[user, server]["metadata"]["uid"]
        return uid

    def home(self, user: str, server: str = "") -> str:
        """Name of the claim that a workspace has mounted."""
        volumes = self.pods()[user, server]["spec"]["volumes"]
        (name,) = (
            one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one
        )
        return str(name)


@pytest.fixture
def places(cluster: KubeCluster, namespace: str) -> Iterator[Places]:
    team = namespace_name("restore-team")
    volumes = [f"{CLASS}-{secrets.token_hex(4)}" for _ in range(HOMES)]
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": team}},
        *(build_volume(name, CLASS) for name in volumes),
        build_old_home(namespace),
    )
    yield Places(cluster, namespace, team)
    cluster.kubectl("delete", "namespace", team, "--wait=false")
    cluster.kubectl("delete", "persistentvolume", "--wait=false", *volumes)


@pytest.fixture
def catalog(places: Places, tmp_path: Path) -> Path:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump(build_catalog(places.namespaces[1])))
    return path


@pytest.fixture
def old_hub(
    cluster: KubeCluster, places: Places, catalog: Path, notebook_port: int, tmp_path: Path
) -> Iterator[Hub]:
    """A hub of the oldest versions, with people in it."""
    hub = Hub(
        tmp_path / "hub",
        kubeconfig=cluster.kubeconfig,
        namespace=places.namespaces[0],
        catalog=catalog,
        notebook_port=notebook_port,
    )
    hub.move_to(matrix.OLDEST)
    hub.start()
    try:
        invite(hub)
        yield hub
    finally:
        hub.stop()


def invite(hub: Hub) -> None:
    for user in (ADA, BOB, NEW):
        hub.put_in_groups(user, "all")
    hub.put_in_groups(EVE, "apart")


def start(hub: Hub, user: str, server: str = "") -> None:
    answer = hub.start_server(user, {"profile": "cpu"}, server=server)
    assert answer.status_code in {201, 202}, answer.text
    hub.wait_until_ready(user, server)


def save_database(hub: Hub) -> None:
    """Let the guide's own program do it, in the folder of the hub that runs."""
    (program,) = re.findall(r"python3 -c '(.*?)'", block_with("pragma integrity_check").text, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=hub.folder, capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"ok \d+ users", done.stdout.strip()), done.stdout + done.stderr


def database(hub: Hub) -> Path:
    return hub.folder / "jupyterhub.sqlite"


def wait_until_known(hub: Hub, *servers: tuple[str, str]) -> None:
    """Wait until a hub that has begun anew has looked after what it remembers, and knows just these."""

    def missing() -> str | None:
        users = hub.api("GET", "users?state=active").raise_for_status().json()
        found = {
            (user["name"], name, one["ready"]) for user in users for name, one in user["servers"].items()
        }
        return None if found == {(*server, True) for server in servers} else f"it knows {found}"

    until(missing, what="the hub to know what runs", check=hub.check, timeout=SPAWN_SECONDS)


class Preflight:
    """The command, as an administrator calls it."""

    def __init__(self, hub: Hub, places: Places, catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._kept = hub.folder / "kept"
        self._here = [f"--catalog={catalog}", f"--namespace={places.namespaces[0]}"]
        self._live = [f"--hub={hub.base}", f"--save={self._kept}", "--no-dry-run"]
        self._capsys = capsys

    def _run(self, *arguments: str) -> dict[str, list[str]]:
        """Give the places of all findings by their codes."""
        main(["preflight", "--json", *self._here, *arguments])
        told = json.loads(self._capsys.readouterr().out)
        outcomes = {one["check"]: one["outcome"] for one in told["result"]["checks"]}
        found: dict[str, list[str]] = {code: [] for code, how in outcomes.items() if how != "not-checked"}
        for one in told["findings"]:
            found[one["code"]].append(one["path"])
        return found

    def unknown(self) -> set[str]:
        """Look at hub and cluster; gives the pods that it says the hub does not know."""
        found = self._run(*self._live)
        assert len(found["old-claim-names"]) == 1
        return set(found["unknown-workspaces"])

    def check_what_was_kept(self) -> None:
        """Look at what the cluster said, without it."""
        found = self._run(f"--cluster={self._kept}")
        assert len(found["old-claim-names"]) == 1
        assert found["one-home"] == found["server-names"] == []
        assert "unknown-workspaces" not in found, "no hub was asked"


@pytest.fixture
def preflight(
    old_hub: Hub,
    cluster: KubeCluster,
    places: Places,
    catalog: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Preflight:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", old_hub.token)
    return Preflight(old_hub, places, catalog, capsys)


def test_what_runs_and_all_homes_outlive_an_upgrade_a_roll_back_and_the_loss_of_the_database(
    old_hub: Hub, places: Places, preflight: Preflight
) -> None:
    hub = old_hub

    # The day before: some people work, the database is saved, more begin to work.
    for user, server in ((ADA, ""), (BOB, "gpu"), (EVE, "")):
        start(hub, user, server)
    assert places.home(ADA) == OLD_HOME
    first = {key: pod["metadata"]["uid"] for key, pod in places.pods().items()}
    save_database(hub)
    hub.stop_server(BOB, "gpu")
    start(hub, BOB)
    homes = places.homes()
    assert len(homes) == 3, "one for each person"

    # The upgrade.
    hub.stop()
    hub.move_to(matrix.NEWEST)
    hub.start()
    wait_until_known(hub, (ADA, ""), (BOB, ""), (EVE, ""))
    assert {places.uid(ADA), places.uid(EVE)} <= set(first.values())
    assert preflight.unknown() == set()
    preflight.check_what_was_kept()
    start(hub, NEW)
    assert list(hub.folder.glob("jupyterhub.sqlite.*")), "the hub has kept a copy of the tables before"

    # The roll back, with the tables that were saved: with the new ones an older hub does not start.
    hub.stop()
    hub.move_to(matrix.OLDEST)
    shutil.copy(hub.folder / "before.sqlite", database(hub))
    hub.start()
    wait_until_known(hub, (ADA, ""), (EVE, ""))
    hub_s, _ = places.namespaces
    lost = {f"pods/{hub_s}/{places.pods()[user, '']['metadata']['name']}" for user in (BOB, NEW)}
    assert preflight.unknown() == lost

    # Who starts the same workspace again has the same home, and the pod that nobody knew is gone.
    before = places.uid(BOB)
    start(hub, BOB)
    assert places.uid(BOB) != before
    assert len(preflight.unknown()) == 1

    # The database is lost altogether.
    hub.stop()
    for file in hub.folder.glob("jupyterhub.sqlite*"):
        file.unlink()
    hub.start()
    invite(hub)
    wait_until_known(hub)
    for user, server in ((ADA, ""), (BOB, "gpu"), (EVE, "")):
        start(hub, user, server)
    assert places.home(ADA) == OLD_HOME
    assert places.home(BOB, "gpu") == places.home(BOB)
    assert len(places.homes()) == len(homes) + 1, "only the new person's was made since"
    assert homes < places.homes()
