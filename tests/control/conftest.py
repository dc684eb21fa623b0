"""All tests here share one cluster of size `control`, each in a namespace of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devcluster.kube import KubeCluster
from tests.devcluster.objects import KWOK_ANNOTATION
from tests.devcluster.pytest_plugin import control_cluster, namespace

__all__ = ["control_cluster", "namespace"]

FOLDER = Path(__file__).parent
TIMEOUT_SECONDS = 300
"""The first test waits for the cluster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(scope="session")
def cluster(control_cluster: KubeCluster) -> KubeCluster:
    return control_cluster


@pytest.fixture
def machines(cluster: KubeCluster) -> None:
    """Machines played by kwok, which only our own cluster is known to have."""
    nodes = cluster.get("/api/v1/nodes")["items"]
    if not any(KWOK_ANNOTATION in node["metadata"].get("annotations", {}) for node in nodes):
        pytest.skip(
            "the cluster given by GPU_WORKSPACES_KUBECONFIG has no kwok machines; unset it to start one"
        )
