"""Home volumes: bound with the first pod, kept for as long as the claim, open to the pod's group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.addons.volumes import SHARED_STORAGE_CLASS, STORAGE_CLASS
from tests.devcluster.cluster import Cluster
from tests.nodes.acting import run_in, wait_until_ready, wait_while, with_image
from tests.nodes.pods import HELPER, build_pod

NODE = "cpu-1"
GROUP = 4242


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    return Registry(cluster).publish_variant(HELPER, mark="homes")


@pytest.fixture
def claim(cluster: Cluster, namespace: str) -> str:
    """Name of a claim that no pod used yet; it names no StorageClass."""
    cluster.apply(build_claim("home", namespace))
    return "home"


def build_claim(name: str, namespace: str, *, mode: str = "ReadWriteOnce", **spec: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def pod_with_home(name: str, namespace: str, claim: str, image: str, *, node: str = NODE) -> dict[str, Any]:
    """A pod that runs as user 1000 with a group of its own."""
    pod = with_image(build_pod(name, namespace, node=node), image)
    pod["spec"]["securityContext"] = {"fsGroup": GROUP}
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "home", "mountPath": "/home/user"}]
    pod["spec"]["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": claim}}]
    return pod


def claim_of(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
    return found


def start(cluster: Cluster, namespace: str, pod: dict[str, Any]) -> None:
    cluster.apply(pod)
    wait_until_ready(cluster, namespace, pod["metadata"]["name"])


def test_a_claim_waits_for_its_first_pod(cluster: Cluster, namespace: str, claim: str, image: str) -> None:
    before = claim_of(cluster, namespace, claim)
    assert before["status"]["phase"] == "Pending"
    assert before["spec"]["storageClassName"] == STORAGE_CLASS, "it is the default"
    start(cluster, namespace, pod_with_home("first", namespace, claim, image))
    assert claim_of(cluster, namespace, claim)["status"]["phase"] == "Bound"


def test_data_outlives_the_pod(cluster: Cluster, namespace: str, claim: str, image: str) -> None:
    start(cluster, namespace, pod_with_home("first", namespace, claim, image))
    run_in(cluster, namespace, "first", "echo kept > /home/user/note")
    cluster.kubectl("delete", "pod", "first", f"--namespace={namespace}")
    start(cluster, namespace, pod_with_home("second", namespace, claim, image))
    assert run_in(cluster, namespace, "second", "cat /home/user/note") == "kept"


def test_the_volume_belongs_to_the_pod_s_group(
    cluster: Cluster, namespace: str, claim: str, image: str
) -> None:
    start(cluster, namespace, pod_with_home("user", namespace, claim, image))
    seen = run_in(
        cluster,
        namespace,
        "user",
        "stat -c '%g %A' /home/user; touch /home/user/new; stat -c %g /home/user/new",
    )
    folder, new = seen.splitlines()
    group, mode = folder.split()
    assert int(group) == GROUP
    assert mode[6] == "s", "new files take the group over"
    assert int(new) == GROUP


def test_the_data_goes_with_the_claim(cluster: Cluster, namespace: str, claim: str, image: str) -> None:
    start(cluster, namespace, pod_with_home("user", namespace, claim, image))
    volume = claim_of(cluster, namespace, claim)["spec"]["volumeName"]
    path = Path(cluster.get(f"/api/v1/persistentvolumes/{volume}")["spec"]["local"]["path"])
    assert path.is_relative_to(cluster.node(NODE).state_dir), "nothing is kept outside the cluster's folder"
    assert path.is_dir()
    cluster.kubectl("delete", "pod/user", f"pvc/{claim}", f"--namespace={namespace}")
    wait_while(cluster, lambda: f"{path} is there" if path.exists() else None, what="the folder to go")


def test_a_shared_volume_is_the_same_on_every_node(cluster: Cluster, namespace: str, image: str) -> None:
    claim = build_claim("team", namespace, mode="ReadWriteMany", storageClassName=SHARED_STORAGE_CLASS)
    cluster.apply(claim)
    for node in cluster.nodes:
        start(cluster, namespace, pod_with_home(f"on-{node}", namespace, "team", image, node=node))
    first, *others = cluster.nodes
    run_in(cluster, namespace, f"on-{first}", "echo shared > /home/user/note")
    for node in others:
        assert run_in(cluster, namespace, f"on-{node}", "cat /home/user/note") == "shared"
