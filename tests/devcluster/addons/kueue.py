"""Kueue: queues Jobs, TrainJobs and RayJobs until their team's quota has room."""

from __future__ import annotations

from collections.abc import Callable

from tests.devcluster.addons.controllers import Controller
from tests.devcluster.cluster import Cluster

KUEUE = Controller(
    name="kueue",
    namespace="kueue-system",
    deployment="kueue-controller-manager",
    probe={
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "probe"},
    },
)
PROGRAMS = KUEUE.programs


def prepare(cluster: Cluster) -> None:
    """Apply it; see `Controller.prepare`."""
    KUEUE.prepare(cluster)


def install(cluster: Cluster) -> Callable[[], None]:
    """Let it judge objects; see `Controller.install`."""
    return KUEUE.install(cluster)
