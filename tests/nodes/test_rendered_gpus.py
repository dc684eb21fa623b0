"""NVIDIA's own device plugin under the rendered configuration offers exactly what the catalog says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.catalog.gpus import resource_of
from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog, Gpu, MigGpu, MpsGpu, TimeSlicedGpu
from hub_ext.render.documents import thaw
from hub_ext.render.gpu_operator import MIG_CONFIG, PLUGIN_CONFIG, render_gpu_operator
from hub_ext.render.quotas import render_limit_ranges
from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.gpu.node import GpuNode
from tests.devcluster.gpu.setup import GpuSetup
from tests.devcluster.waiting import until
from tests.nodes.pods import HELPER, build_pod

CARDS = 2
PRODUCT = "NVIDIA-H200"
SHARED = {"product": PRODUCT, "replicas": 4}
GPUS: dict[str, dict[str, Any]] = {
    "whole": {"product": PRODUCT, "sharing": "exclusive"},
    "mixed": {"product": PRODUCT, "sharing": "mig", "geometry": {"1g.18gb": 3, "3g.71gb": 1}},
    "single": {"product": PRODUCT, "sharing": "mig", "strategy": "single", "geometry": {"3g.71gb": 2}},
    "turns": {**SHARED, "sharing": "time-slicing"},
    "turns-renamed": {**SHARED, "sharing": "time-slicing", "renameByDefault": True},
    "parts": {**SHARED, "sharing": "mps"},
    "parts-renamed": {**SHARED, "sharing": "mps", "renameByDefault": True},
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """One pool for each way of giving out a card, and a profile in each."""
    digest = "sha256:" + "0" * 64
    image = {"ref": f"registry.example.com/cuda@{digest}", "displayName": "CUDA", "cuda": "13.0"}
    resources = {
        name: {"pool": name} | ({"slice": next(iter(gpu["geometry"]))} if "geometry" in gpu else {})
        for name, gpu in GPUS.items()
    }
    return load_catalog(
        {
            "apiVersion": "gpu-workspaces/v1",
            "kind": "Catalog",
            "images": {"cuda": image},
            "pools": {name: {"nodeSelector": {"pool": name}, "gpu": gpu} for name, gpu in GPUS.items()},
            "profiles": [
                {
                    "name": name,
                    "version": 1,
                    "displayName": name,
                    "images": ["cuda"],
                    "resources": {"cpu": 1, "memory": "1Gi", "gpu": gpu},
                    "access": {"everyone": True},
                }
                for name, gpu in resources.items()
            ],
        }
    )


@pytest.fixture(scope="module")
def rendered(catalog: Catalog) -> dict[str, dict[str, str]]:
    """The data of each ConfigMap, by name."""
    return {d["metadata"]["name"]: d["data"] for d in render_gpu_operator(catalog).documents}


@pytest.fixture
def switch(cluster: Cluster) -> Iterator[Callable[[GpuSetup], GpuNode]]:
    """Give `gpu-1` other cards and another configuration until the test ends."""
    node = GpuNode(cluster, cluster.node("gpu-1"))

    def to(setup: GpuSetup) -> GpuNode:
        node.switch(setup)
        return node

    yield to
    node.switch(node.setup)
    node.wait_until_offered()


def meant(gpu: Gpu) -> dict[str, int]:
    """What two cards of a pool are, by the catalog's own words."""
    match gpu:
        case MigGpu():
            offers: dict[str, int] = {}
            for name, count in gpu.geometry.items():
                offers[resource_of(gpu, name)] = offers.get(resource_of(gpu, name), 0) + count * CARDS
            return offers
        case TimeSlicedGpu() | MpsGpu():
            return {resource_of(gpu): gpu.replicas * CARDS}
        case _:
            return {resource_of(gpu): CARDS}


@pytest.mark.parametrize("pool", GPUS)
def test_a_node_of_each_pool_offers_what_the_catalog_says(
    pool: str,
    catalog: Catalog,
    rendered: dict[str, dict[str, str]],
    switch: Callable[[GpuSetup], GpuNode],
) -> None:
    gpu = catalog.pools[pool].gpu
    assert gpu is not None
    plugin = yaml.safe_load(rendered[PLUGIN_CONFIG][pool])
    assert plugin.pop("version") == "v1"
    node = switch(GpuSetup(product="H200", cards=cut(rendered, pool), plugin=plugin))

    def missing() -> str | None:
        seen = {name: count for name, count in node.allocatable().items() if count}
        return None if seen == meant(gpu) else f"offers {seen}, not {meant(gpu)}"

    until(missing, what=f"GPUs of pool {pool}", check=node.cluster.check)


def cut(rendered: dict[str, dict[str, str]], pool: str) -> Any:
    """Cut cards as the MIG manager would by the rendered layout."""
    layouts = yaml.safe_load(rendered[MIG_CONFIG]["config.yaml"])["mig-configs"]
    if pool not in layouts:
        return CARDS
    (layout,) = layouts[pool]
    assert (layout["devices"], layout["mig-enabled"]) == ("all", True)
    slices = [name for name, count in layout["mig-devices"].items() for _ in range(count)]
    return [{"mig": slices}] * CARDS


def test_a_limit_range_of_zero_cards_keeps_no_pod_from_a_node_without_cards(
    cluster: Cluster, namespace: str
) -> None:
    golden = Path(__file__).parents[1] / "golden" / "catalog.yaml"
    catalog = load_catalog(yaml.safe_load(golden.read_text(encoding="utf-8").replace("team-nlp", namespace)))
    mine = [d for d in render_limit_ranges(catalog).documents if d["metadata"]["namespace"] == namespace]
    cluster.apply(*(thaw(document) for document in mine))
    pod = build_pod("plain", namespace, node="cpu-1")
    image = Registry(cluster).publish_variant(HELPER, mark="limits")
    pod["spec"]["containers"][0] |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    cluster.apply(pod)
    cluster.wait_for("pod/plain", "condition=Ready", namespace=namespace)
    made = cluster.get(f"/api/v1/namespaces/{namespace}/pods/plain")
    assert made["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "0"
