"""A home in one zone, and machines in another: told before a start, and by the start itself."""

from __future__ import annotations

import html
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcluster.kube import KubeCluster
from tests.devcluster.pytest_plugin import namespace
from tests.devcluster.waiting import until
from tests.hub.harness import SPAWN_SECONDS, Hub
from tests.hub.volumes import build_volume
from tests.prepulling.fleet import POOL, fleet

__all__ = ["namespace"]

ZONE = "topology.kubernetes.io/zone"
CLASS = "of-one-zone"
APART = "Your home is in zone-c; this workspace's machines are in zone-a."
NEAR, FAR = "near-home", "far-from-home"


def build_catalog() -> dict[str, Any]:
    digest = "a" * 64
    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {"base": {"ref": f"registry.example.com/base@sha256:{digest}", "displayName": "Base"}},
        "pools": {name: {"nodeSelector": {POOL: name}} for name in (NEAR, FAR)},
        "defaults": {"storage": {"home": {"class": CLASS, "size": "1Gi"}}},
        "profiles": [
            {
                "name": name,
                "version": 1,
                "displayName": f"Machines {name}",
                "images": ["base"],
                "resources": {"cpu": "100m", "memory": "64Mi", "pool": name},
            }
            for name in (NEAR, FAR)
        ],
    }


def build_home_volume(name: str) -> dict[str, Any]:
    """Build a volume that can be attached in one zone only."""
    rule = {"key": ZONE, "operator": "In", "values": ["zone-c"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    return build_volume(name, CLASS, nodeAffinity=affinity)


@pytest.fixture
def zones(cluster: KubeCluster) -> Iterator[None]:
    volume = f"{CLASS}-{secrets.token_hex(4)}"
    with fleet(cluster, {NEAR: 1, FAR: 1}):
        for name, zone in ((NEAR, "zone-c"), (FAR, "zone-a")):
            cluster.kubectl("label", "node", f"{name}-0", f"{ZONE}={zone}")
        cluster.apply(build_home_volume(volume))
        yield
        cluster.kubectl("delete", "persistentvolume", volume, "--wait=false")


@pytest.fixture
def zoned_hub(
    cluster: KubeCluster, namespace: str, zones: None, notebook_port: int, tmp_path: Path
) -> Iterator[Hub]:
    """A hub that may see nodes and volumes."""
    catalog = tmp_path / "catalog.yaml"
    catalog.write_text(yaml.safe_dump(build_catalog()))
    hub = Hub(
        tmp_path / "hub",
        kubeconfig=cluster.kubeconfig,
        namespace=namespace,
        catalog=catalog,
        notebook_port=notebook_port,
    )
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


def test_a_home_in_another_zone_is_told_before_and_ends_a_start_at_once(zoned_hub: Hub) -> None:
    hub = zoned_hub
    hub.put_in_groups("ada")
    listed: list[dict[str, Any]] = []

    def unknown() -> str | None:
        """Start and stop: where the home is, is looked at then, and not waited for for long."""
        hub.start_server("ada", {"profile": NEAR})
        hub.wait_until_ready("ada")
        hub.stop_server("ada")
        listed[:] = hub.api("GET", "users/ada/workspaces").json()["workspaces"]
        warnings = [one["warning"] for one in listed]
        return None if warnings == ["", f"{APART} It cannot start with this home."] else str(warnings)

    until(unknown, what="the home's place to be known", check=hub.check, timeout=SPAWN_SECONDS)
    assert all(one["mayStart"] for one in listed)
    with hub.browser("ada") as browser:
        assert html.unescape(browser.spawn_page().text).count(APART) == 1
    hub.start_server("ada", {"profile": FAR})

    def missing() -> str | None:
        pending = (hub.server("ada") or {}).get("pending")
        return f"it is {pending}" if pending else None

    until(missing, what="the start to be given up", check=hub.check, timeout=SPAWN_SECONDS)
    text = hub.api("GET", "users/ada/server/progress").text
    failed = json.loads(text.rpartition("data: ")[2].partition("\n")[0])
    assert failed["failed"]
    assert APART in failed["message"]
