"""All tests here share two clusters with real nodes: one with every kind of node, and one for batch work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.devcluster.client import running
from tests.devcluster.cluster import Cluster
from tests.devcluster.pytest_plugin import CUT_CONNECTIONS, namespace, nodes_cluster

__all__ = ["namespace", "nodes_cluster"]

FOLDER = Path(__file__).parent
TIMEOUT_SECONDS = 600
"""The first test waits for the cluster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not item.path.is_relative_to(FOLDER):
            continue
        for mark in CUT_CONNECTIONS:
            item.add_marker(mark)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(scope="session")
def cluster(nodes_cluster: Cluster) -> Cluster:
    return nodes_cluster


@pytest.fixture(scope="session")
def batch_cluster() -> Iterator[Cluster]:
    """A cluster in which pods are created only while Kueue answers; so it is not the other tests' one."""
    with running("nodes-batch", like="test-batch") as cluster:
        yield cluster
