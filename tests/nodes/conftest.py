"""All tests here share one cluster with real nodes, each in a namespace of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devcluster.cluster import Cluster
from tests.devcluster.pytest_plugin import namespace, nodes_cluster

__all__ = ["namespace", "nodes_cluster"]

FOLDER = Path(__file__).parent
TIMEOUT_SECONDS = 600
"""The first test waits for the cluster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(scope="session")
def cluster(nodes_cluster: Cluster) -> Cluster:
    return nodes_cluster
