"""All tests here share one cluster of size `control`, each in a namespace of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.devcluster.kube import KubeCluster
from tests.devcluster.objects import KWOK_ANNOTATION
from tests.devcluster.pytest_plugin import (
    CUT_CONNECTIONS,
    KUBECONFIG_VARIABLE,
    control_cluster,
    namespace,
)

__all__ = ["control_cluster", "namespace"]

FOLDER = Path(__file__).parent
TIMEOUT_SECONDS = 600
"""The first test waits for the cluster."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bound the time, and leave out what needs played machines where somebody else's cluster is given."""
    ours = [item for item in items if item.path.is_relative_to(FOLDER)]
    for item in ours:
        for mark in CUT_CONNECTIONS:
            item.add_marker(mark)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))
    if KUBECONFIG_VARIABLE in os.environ:
        left_out = [item for item in ours if "machines" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def cluster(control_cluster: KubeCluster) -> KubeCluster:
    return control_cluster


@pytest.fixture
def machines(cluster: KubeCluster) -> None:
    """Machines played by kwok, which only our own cluster is known to have."""
    nodes = cluster.get("/api/v1/nodes")["items"]
    assert any(KWOK_ANNOTATION in node["metadata"].get("annotations", {}) for node in nodes)
