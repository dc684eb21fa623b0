"""The hub and its prepuller together: the spawn page says what is warm by the word of the one who fetched.

The machines are played: they list what a test writes there, and pods end well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcluster.kube import KubeCluster
from tests.devcluster.ports import free_port
from tests.devcluster.pytest_plugin import namespace
from tests.devcluster.waiting import until
from tests.hub.harness import Hub
from tests.prepulling.account import account
from tests.prepulling.fleet import POOL, fleet

__all__ = ["namespace"]

MACHINES = "prepulled"
WARM, COLD = "Warm workspace", "Cold workspace"


def build_catalog() -> dict[str, Any]:
    images = {"warm": "a", "cold": "b"}
    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {
            key: {"ref": f"registry.example.com/{key}@sha256:{letter * 64}", "displayName": key}
            for key, letter in images.items()
        },
        "pools": {MACHINES: {"nodeSelector": {POOL: MACHINES}}},
        "profiles": [
            {
                "name": key,
                "version": 1,
                "displayName": title,
                "images": [key],
                "resources": {"cpu": "100m", "memory": "64Mi", "pool": MACHINES},
            }
            for key, title in (("warm", WARM), ("cold", COLD))
        ],
    }


@pytest.fixture
def machine(cluster: KubeCluster) -> Iterator[None]:
    """A machine that lists its images: of what it does not list it is known that it is not there."""
    with fleet(cluster, {MACHINES: 1}):
        listed = {"status": {"images": [{"names": ["registry.example.com/pause:1"], "sizeBytes": 1}]}}
        patch = ("patch", "node", f"{MACHINES}-0", "--subresource=status", "--type=merge")
        cluster.kubectl(*patch, f"--patch={json.dumps(listed)}")
        yield


@pytest.fixture
def hub(
    cluster: KubeCluster, namespace: str, machine: None, notebook_port: int, tmp_path: Path
) -> Iterator[Hub]:
    """A hub that runs a prepuller which may keep one image only, so that the other stays cold."""
    catalog = tmp_path / "catalog.yaml"
    catalog.write_text(yaml.safe_dump(build_catalog()))
    pods = {"namespace": namespace, "annotations": {"devcluster.test/complete-after": "1s"}}
    with account(cluster, namespace, tmp_path) as kubeconfig:
        service = {
            "name": "prepuller",
            "url": f"http://127.0.0.1:{free_port()}",
            "settings": {"pods": pods, "limits": {"pins": 1}},
            "environment": {"KUBECONFIG": str(kubeconfig)},
        }
        found = Hub(
            tmp_path / "hub",
            kubeconfig=cluster.kubeconfig,
            namespace=namespace,
            catalog=catalog,
            notebook_port=notebook_port,
            services=[service],
        )
        found.start()
        try:
            yield found
        finally:
            found.stop()


def test_the_spawn_page_tells_warm_from_cold(hub: Hub) -> None:
    hub.put_in_groups("ada")

    def missing() -> str | None:
        answer = hub.api("GET", "users/ada/workspaces").json()
        told = {one["title"]: (one["now"] or {}).get("text", "") for one in answer["workspaces"]}
        right = "warm start" in told[WARM] and "cold start" in told[COLD]
        return None if right else f"{told}; {hub.log[-2000:]}"

    until(missing, what="the prepuller's word", check=hub.check)
    with hub.browser("ada") as browser:
        page = browser.spawn_page().text
    assert "warm start" in page.partition(COLD)[0]
    assert "cold start" in page.partition(COLD)[2]
