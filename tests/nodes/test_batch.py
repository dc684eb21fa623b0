"""Kueue, JobSet, Trainer and KubeRay: what is queued, admitted and accepted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.nodes.acting import wait_while
from tests.nodes.pods import HELPER

QUEUE = {"kueue.x-k8s.io/queue-name": "batch"}


@pytest.fixture(scope="module")
def cluster(batch_cluster: Cluster) -> Cluster:
    return batch_cluster


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    return Registry(cluster).publish(ensure_image(HELPER), "tests/batch")


@pytest.fixture
def queue(cluster: Cluster, namespace: str) -> str:
    """The test's namespace, with a queue `batch` of one CPU."""
    flavor = {"name": namespace, "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    cluster.apply(
        kueue("ResourceFlavor", {"name": namespace}, {}),
        kueue(
            "ClusterQueue",
            {"name": namespace},
            {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
            },
        ),
        kueue("LocalQueue", {"name": "batch", "namespace": namespace}, {"clusterQueue": namespace}),
    )
    return namespace


def kueue(kind: str, metadata: dict[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def container(image: str, script: str, *, cpu: str, name: str = "main") -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": cpu}},
    }


def job(name: str, namespace: str, image: str, script: str) -> dict[str, Any]:
    """A Job of 0.6 CPU for the queue."""
    pod = {"restartPolicy": "Never", "containers": [container(image, script, cpu="600m")]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": QUEUE},
        "spec": {"suspend": True, "backoffLimit": 0, "template": {"spec": pod}},
    }


def training_runtime(name: str, image: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "node", "image": image}]}
    replicated = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": pod}},
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [replicated]}}},
    }


def train_job(namespace: str, runtime: str, script: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "training", "namespace": namespace, "labels": QUEUE},
        "spec": {
            "suspend": True,
            "runtimeRef": {"name": runtime},
            "trainer": {
                "command": ["sh", "-c", script],
                "numNodes": 1,
                "resourcesPerNode": {"requests": {"cpu": "300m"}},
            },
        },
    }


def ray_job(namespace: str) -> dict[str, Any]:
    """A RayJob of an image that is not there; the pod that submits it counts in the quota, too."""
    head = container("ray.test/ray:1", "sleep infinity", cpu="200m", name="head")
    submitter = container("ray.test/ray:1", "sleep infinity", cpu="100m", name="submitter")
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "analysis", "namespace": namespace, "labels": QUEUE},
        "spec": {
            "suspend": True,
            "entrypoint": "python -c 'print(1)'",
            "shutdownAfterJobFinishes": True,
            "submitterPodTemplate": {"spec": {"restartPolicy": "Never", "containers": [submitter]}},
            "rayClusterSpec": {
                "rayVersion": "2.53.0",
                "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [head]}}},
            },
        },
    }


def get(cluster: Cluster, path: str, namespace: str, name: str) -> dict[str, Any]:
    group, _, plural = path.rpartition("/")
    found: dict[str, Any] = cluster.get(f"/apis/{group}/namespaces/{namespace}/{plural}/{name}")
    return found


def workloads(cluster: Cluster, namespace: str) -> dict[str, set[str]]:
    """Conditions that are true, for each of Kueue's workloads by the name of what it stands for."""
    items = cluster.get(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads")["items"]
    return {
        item["metadata"]["ownerReferences"][0]["name"]: {
            condition["type"]
            for condition in item.get("status", {}).get("conditions", [])
            if condition["status"] == "True"
        }
        for item in items
    }


def wait_until_workload_is(cluster: Cluster, namespace: str, name: str, condition: str) -> None:
    def missing() -> str | None:
        seen = workloads(cluster, namespace)
        return None if condition in seen.get(name, set()) else f"workloads: {seen}"

    wait_while(cluster, missing, what=f"{name} to be {condition}")


def test_a_job_waits_until_its_queue_has_room(cluster: Cluster, queue: str, image: str) -> None:
    until_told = "until [ -e /tmp/end ]; do sleep 0.2; done"
    cluster.apply(job("first", queue, image, until_told))
    cluster.wait_for("job/first", "jsonpath={.status.ready}=1", namespace=queue)
    cluster.apply(job("second", queue, image, "true"))
    cluster.wait_for("job/second", "condition=Suspended", namespace=queue)

    def missing() -> str | None:
        seen = workloads(cluster, queue)
        return None if "QuotaReserved" not in seen.get("second", {"QuotaReserved"}) else f"workloads: {seen}"

    wait_while(cluster, missing, what="the second Job to queue")
    wait_until_workload_is(cluster, queue, "first", "Admitted")
    cluster.kubectl("exec", f"--namespace={queue}", "job/first", "--", "touch", "/tmp/end")
    for name in ("first", "second"):
        cluster.wait_for(f"job/{name}", "condition=Complete", namespace=queue)


def test_a_job_for_no_queue_runs_at_once(cluster: Cluster, queue: str, image: str) -> None:
    free = job("free", queue, image, "true")
    del free["metadata"]["labels"]
    free["spec"]["suspend"] = False
    cluster.apply(free)
    cluster.wait_for("job/free", "condition=Complete", namespace=queue)
    assert workloads(cluster, queue) == {}


def test_a_train_job_is_admitted_and_becomes_a_job_set(cluster: Cluster, queue: str, image: str) -> None:
    cluster.apply(training_runtime(queue, image))
    cluster.apply(train_job(queue, queue, "true"))
    cluster.wait_for("trainjob/training", "condition=Complete", namespace=queue)
    job_set = get(cluster, "jobset.x-k8s.io/v1alpha2/jobsets", queue, "training")
    assert job_set["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
    wait_until_workload_is(cluster, queue, "training", "Finished")


def test_a_train_job_without_its_runtime_is_refused(cluster: Cluster, queue: str) -> None:
    with pytest.raises(CommandFailedError) as error:
        cluster.apply(train_job(queue, "nobody-s", "true"))
    assert [
        line
        for line in error.value.output.splitlines()
        if "denied the request" in line and "nobody-s" in line
    ]


def test_a_ray_job_is_accepted_queued_and_admitted(cluster: Cluster, queue: str) -> None:
    cluster.apply(ray_job(queue))
    wait_until_workload_is(cluster, queue, "analysis", "Admitted")
    wait_while(
        cluster,
        lambda: None if ray_clusters(cluster, queue) else "there is none",
        what="KubeRay to make the RayJob's cluster",
    )


def ray_clusters(cluster: Cluster, namespace: str) -> list[str]:
    items = cluster.get(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters")["items"]
    return [item["metadata"]["ownerReferences"][0]["name"] for item in items]
