"""KubeRay: RayJobs and the clusters that they run on."""

from __future__ import annotations

from collections.abc import Callable

from tests.devcluster.addons.controllers import Controller
from tests.devcluster.cluster import Cluster

KUBERAY = Controller(name="kuberay", namespace="default", deployment="kuberay-operator")
PROGRAMS = KUBERAY.programs


def prepare(cluster: Cluster) -> None:
    """Apply it; see `Controller.prepare`."""
    KUBERAY.prepare(cluster)


def install(cluster: Cluster) -> Callable[[], None]:
    """Let it judge objects; see `Controller.install`."""
    return KUBERAY.install(cluster)
