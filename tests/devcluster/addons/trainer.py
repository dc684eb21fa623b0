"""Kubeflow Trainer: TrainJobs, run as JobSets after a runtime that an admin provides."""

from __future__ import annotations

from collections.abc import Callable

from tests.devcluster.addons.controllers import Controller
from tests.devcluster.cluster import Cluster

TRAINER = Controller(
    name="trainer",
    namespace="kubeflow-system",
    deployment="kubeflow-trainer-controller-manager",
    needs=("jobsets.jobset.x-k8s.io",),
    probe={
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "probe", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "metadata": {
                                    "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
                                },
                                "spec": {
                                    "template": {
                                        "spec": {
                                            "containers": [{"name": "node", "image": "probe.test/probe"}]
                                        }
                                    }
                                },
                            },
                        }
                    ]
                }
            }
        },
    },
)
PROGRAMS = TRAINER.programs


def prepare(cluster: Cluster) -> None:
    """Apply it; see `Controller.prepare`."""
    TRAINER.prepare(cluster)


def install(cluster: Cluster) -> Callable[[], None]:
    """Let it judge objects; see `Controller.install`."""
    return TRAINER.install(cluster)
