"""Machines that exist in the API only, for tests of scale: kwok plays their kubelets.

Shell: starts kwok and creates Node objects.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.devcluster.api import Api, is_ready
from tests.devcluster.cluster import Cluster
from tests.devcluster.objects import KWOK_ANNOTATION, build_kwok_nodes
from tests.devcluster.waiting import PATIENCE_SECONDS, Check

STAGES = Path(__file__).with_name("kwok_stages.yaml")
LEASE_SECONDS = 40
CONNECTIONS = 8


def start(cluster: Cluster, api: Api, *, check: Check) -> None:
    """Start kwok, create the machines of all pools and wait until they are Ready."""
    cluster.popen(
        "kwok",
        [
            cluster.programs["kwok"],
            f"--kubeconfig={cluster.kubeconfig}",
            f"--config={STAGES}",
            f"--manage-nodes-with-annotation-selector={KWOK_ANNOTATION}=fake",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
        ],
    )
    nodes = [node for pool in cluster.spec.kwok for node in build_kwok_nodes(pool)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda node: api.request("POST", "/api/v1/nodes", node), nodes))
    api.until_all(
        "/api/v1/nodes",
        {node["metadata"]["name"] for node in nodes},
        is_ready,
        what=f"the {len(nodes)} kwok nodes to be Ready",
        timeout=PATIENCE_SECONDS,
        check=check,
    )
