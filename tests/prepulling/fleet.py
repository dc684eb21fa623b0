"""Many played machines, for as long as a test needs them.

Shell: talks to the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.devcluster.api import is_ready
from tests.devcluster.kube import KubeCluster
from tests.devcluster.objects import build_kwok_nodes
from tests.devcluster.spec import KwokPool
from tests.devcluster.waiting import until

POOL = "prepull.test/pool"


@contextmanager
def fleet(cluster: KubeCluster, pools: Mapping[str, int]) -> Iterator[None]:
    """Add machines named `<pool>-<number>`, each with the label of its pool; take them away afterwards."""
    nodes = [
        node
        for name, count in pools.items()
        for node in build_kwok_nodes(KwokPool(name=name, count=count, labels={POOL: name}))
    ]
    names = [node["metadata"]["name"] for node in nodes]
    try:
        for start in range(0, len(nodes), 100):
            items = {"apiVersion": "v1", "kind": "List", "items": nodes[start : start + 100]}
            cluster.kubectl("create", "--filename=-", input=json.dumps(items), timeout=120)

        def missing() -> str | None:
            there = {node["metadata"]["name"]: node for node in cluster.get("/api/v1/nodes")["items"]}
            late = [name for name in names if name not in there or not is_ready(there[name])]
            return f"{len(late)} are not" if late else None

        until(missing, what="the fleet to be ready")
        yield
    finally:
        cluster.kubectl("delete", "nodes", *names, "--ignore-not-found", "--wait=false", timeout=120)
