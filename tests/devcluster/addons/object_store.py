"""A real S3 object store on the host, which pods reach; see `tests.devcluster.object_store`."""

from __future__ import annotations

import json

from tests.devcluster import object_store
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import StateError
from tests.devcluster.object_store import Keys, ObjectStore
from tests.devcluster.spec import Addon

PROGRAMS = object_store.PROGRAMS
FOLDER = "object-store"


def prepare(cluster: Cluster) -> None:
    """Start it."""
    folder = cluster.state_dir / FOLDER
    object_store.start(
        cluster.processes,
        folder,
        cluster.programs[PROGRAMS[0]],
        address=address(cluster),
        log=cluster.logs_dir / "object-store.log",
    )


def address(cluster: Cluster) -> str:
    """`host:port`."""
    return f"{cluster.host_address}:{cluster.port('object-store')}"


def store_of(cluster: Cluster) -> ObjectStore:
    """A handle of a running cluster's store; raises `StateError` where it has none."""
    if Addon.OBJECT_STORE not in cluster.spec.addons:
        raise StateError(
            cluster.name, "has no object store", "add `object-store` to `addons` in the cluster file"
        )
    keys = json.loads((cluster.state_dir / FOLDER / object_store.KEYS_FILE).read_text())
    return ObjectStore(
        f"http://{address(cluster)}",
        root=Keys(**keys),
        program=cluster.programs[PROGRAMS[0]],
        env=cluster.processes.env,
    )
