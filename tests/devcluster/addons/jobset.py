"""JobSet: sets of Jobs that start and end together; Trainer makes them of its TrainJobs."""

from __future__ import annotations

from collections.abc import Callable

from tests.devcluster.addons.controllers import Controller
from tests.devcluster.cluster import Cluster

JOBSET = Controller(
    name="jobset",
    namespace="jobset-system",
    deployment="jobset-controller-manager",
    probe={
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {
            "replicatedJobs": [
                {
                    "name": "probe",
                    "template": {
                        "spec": {
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [{"name": "probe", "image": "probe.test/probe"}],
                                }
                            }
                        }
                    },
                }
            ]
        },
    },
)
PROGRAMS = JOBSET.programs


def prepare(cluster: Cluster) -> None:
    """Apply it; see `Controller.prepare`."""
    JOBSET.prepare(cluster)


def install(cluster: Cluster) -> Callable[[], None]:
    """Let it judge objects; see `Controller.install`."""
    return JOBSET.install(cluster)
