"""Whether a pin outlives the kubelet's image collector: `python -m tests.bench.prepull_pins`. Needs root.

The prepuller fetches two images to a real node. One pod is deleted, as when the catalog does not need its
image any more. Then the kubelet takes its disk for too full and collects, which it does every five minutes:
what it has left is printed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.devcluster.addons.registry import Registry
from tests.devcluster.client import running as cluster_running
from tests.devcluster.cluster import Cluster
from tests.devcluster.control import Verb
from tests.devcluster.spec import parse
from tests.devcluster.waiting import until
from tests.prepulling.account import account
from tests.prepulling.service import running

NODE = "one"
NAMESPACE = "pins"
COLLECTED_SECONDS = 420
"""Two rounds of the collector, of which the first finds all images too young."""


def build_catalog(images: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {key: {"ref": ref, "displayName": key} for key, ref in images.items()},
        "profiles": [
            {
                "name": key,
                "version": 1,
                "displayName": key,
                "images": [key],
                "resources": {"cpu": 1, "memory": "1Gi"},
            }
            for key in images
        ],
    }


@contextmanager
def collecting_kubelet(cluster: Cluster) -> Iterator[None]:
    """Have the kubelet remove every image that is not in use."""
    file = cluster.node(NODE).state_dir / "kubelet.json"
    before = file.read_text()
    thresholds = {"imageGCHighThresholdPercent": 1, "imageGCLowThresholdPercent": 0}
    file.write_text(json.dumps(json.loads(before) | thresholds))
    try:
        cluster.control(Verb.START, f"{NODE}/kubelet")
        yield
    finally:
        file.write_text(before)


def listed(cluster: Cluster) -> set[str]:
    """The images that the node lists."""
    images = cluster.get(f"/api/v1/nodes/{NODE}")["status"]["images"]
    return {name for image in images for name in image["names"]}


async def fetch(cluster: Cluster, images: dict[str, str], tool: str) -> dict[str, str]:
    """Have the images fetched; gives the names of their pods."""
    pods = {"namespace": NAMESPACE, "tool": tool}
    with (
        tempfile.TemporaryDirectory() as folder,
        account(cluster, NAMESPACE, Path(folder)) as kubeconfig,
    ):
        async with running(kubeconfig, build_catalog(images), Path(folder), pods=pods) as found:
            await found.until(lambda: found.states()["pulled"] == len(images), what="warm node")
            await found.until(found.all_ended, what="end of the pods")
            moment = found.service.moment
            assert moment is not None
            return {pod.image: pod.name for pod in moment.picture.pods}


def measure(cluster: Cluster) -> None:
    """Play it through and print what is left."""
    registry = Registry(cluster)
    images = {
        key: registry.publish_variant("helper", mark=secrets.token_hex(4), padding_bytes=4 << 20)
        for key in ("pinned", "loose")
    }
    cluster.kubectl("create", "namespace", NAMESPACE)
    pods = asyncio.run(fetch(cluster, images, registry.publish_variant("helper", mark="tool")))
    cluster.kubectl("delete", "pod", pods[images["loose"]], f"--namespace={NAMESPACE}")
    until(lambda: None if set(images.values()) <= listed(cluster) else "not listed", what="both images")
    with collecting_kubelet(cluster):
        until(
            lambda: "it is still there" if images["loose"] in listed(cluster) else None,
            what="the collector",
            timeout=COLLECTED_SECONDS,
            check=cluster.check,
        )
    left = listed(cluster)
    for key, ref in images.items():
        print(f"| {key} | {'still there' if ref in left else 'collected'} |", flush=True)


def main() -> None:
    spec = parse({"size": "nodes", "nodes": [{"name": NODE}], "addons": ["registry"]}, source="bench")
    with cluster_running(spec, like="bench-pins") as cluster:
        measure(cluster)


if __name__ == "__main__":
    main()
