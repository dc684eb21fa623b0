"""The control plane decides as a cluster's does, and kwok's machines behave as its stages say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.kube import KubeCluster
from tests.devcluster.rules import enforce
from tests.devcluster.waiting import until

SLOW_PULL = "devcluster.test/pull-delay"
BAD_PULL = "devcluster.test/pull-error"
OUT_OF_MEMORY = "devcluster.test/oom-after"
COMPLETE = "devcluster.test/complete-after"


def build_pod(
    name: str, namespace: str, *, gpus: int = 0, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    resources = {"limits": {"cpu": "100m", "memory": "64Mi"}}
    if gpus:
        resources["limits"]["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
        "spec": {
            "restartPolicy": "Never",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}] if gpus else [],
            "containers": [{"name": "main", "image": "registry.example.com/none:1", "resources": resources}],
        },
    }


def container_state(cluster: KubeCluster, name: str, namespace: str) -> dict[str, Any]:
    pod = cluster.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    state: dict[str, Any] = pod["status"]["containerStatuses"][0]["state"]
    return state


def test_serves_the_version_it_was_asked_for(cluster: KubeCluster) -> None:
    version = cluster.get("/version")
    if isinstance(cluster, Cluster):
        assert version["gitVersion"].startswith(f"v{cluster.spec.kubernetes}.")
    assert int(version["minor"].rstrip("+")) >= 32


def test_quota_refuses_what_exceeds_it(cluster: KubeCluster, namespace: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": namespace},
        "spec": {"hard": {"requests.nvidia.com/gpu": "2"}},
    }
    cluster.apply(quota)
    cluster.wait_for("resourcequota/gpus", "jsonpath={.status.hard}", namespace=namespace)
    cluster.apply(build_pod("first", namespace, gpus=2))
    with pytest.raises(CommandFailedError) as refused:
        cluster.apply(build_pod("second", namespace, gpus=1))
    assert "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: " in refused.value.output


def test_admission_gives_pods_their_defaults(cluster: KubeCluster, namespace: str) -> None:
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "default", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}]},
    }
    cluster.apply(limits)
    pod = build_pod("plain", namespace)
    pod["spec"]["containers"][0]["resources"] = {}
    cluster.apply(pod)
    made = cluster.get(f"/api/v1/namespaces/{namespace}/pods/plain")
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert made["spec"]["serviceAccountName"] == "default"
    assert any("projected" in volume for volume in made["spec"]["volumes"])


def test_pod_security_is_enforced(cluster: KubeCluster, namespace: str) -> None:
    enforce(cluster, namespace)
    with pytest.raises(CommandFailedError) as refused:
        cluster.apply(build_pod("careless", namespace))
    assert 'violates PodSecurity "restricted' in refused.value.output


def test_a_token_may_do_what_its_role_says_and_no_more(
    cluster: KubeCluster, namespace: str, tmp_path: Path
) -> None:
    within = f"--namespace={namespace}"
    cluster.kubectl("create", "serviceaccount", "reader", within)
    cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", within)
    cluster.kubectl(
        "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:reader", within
    )
    # Without the administrator's client certificate: it would win over the token.
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--output=json"))
    config["users"][0]["user"] = {"token": cluster.kubectl("create", "token", "reader", within).strip()}
    reader = tmp_path / "kubeconfig"
    reader.write_text(json.dumps(config))

    def missing() -> str | None:
        try:
            cluster.kubectl("get", "pods", within, f"--kubeconfig={reader}")
        except CommandFailedError as error:
            return error.output
        return None

    until(missing, what="the new role to count", check=cluster.check)
    for refused in (("get", "secrets"), ("delete", "pod", "any")):
        with pytest.raises(CommandFailedError, match="forbidden"):
            cluster.kubectl(*refused, within, f"--kubeconfig={reader}")


@pytest.mark.usefixtures("machines")
def test_kwok_machines_run_pods_where_they_fit(cluster: KubeCluster, namespace: str) -> None:
    cluster.apply(build_pod("cpu", namespace), build_pod("gpu", namespace, gpus=8))
    for name in ("cpu", "gpu"):
        cluster.wait_for(f"pod/{name}", "condition=Ready", namespace=namespace)
    nodes = {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in cluster.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    }
    assert nodes["cpu"].startswith("cpu-")
    assert nodes["gpu"].startswith("gpu-")


@pytest.mark.usefixtures("machines")
def test_a_pod_that_fits_nowhere_says_why(cluster: KubeCluster, namespace: str) -> None:
    cluster.apply(build_pod("greedy", namespace, gpus=9))
    cluster.wait_for("pod/greedy", "condition=PodScheduled=False", namespace=namespace)
    pod = cluster.get(f"/api/v1/namespaces/{namespace}/pods/greedy")
    condition = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    assert condition["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in condition["message"]


@pytest.mark.usefixtures("machines")
def test_kwok_plays_a_failing_pull(cluster: KubeCluster, namespace: str) -> None:
    cluster.apply(build_pod("unlucky", namespace, annotations={BAD_PULL: "manifest unknown"}))

    def missing() -> str | None:
        statuses = cluster.get(f"/api/v1/namespaces/{namespace}/pods/unlucky")["status"]
        waiting = statuses.get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {})
        return None if waiting.get("reason") == "ImagePullBackOff" else str(waiting)

    until(missing, what="the pull to be backed off", check=cluster.check)


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize(
    ("annotation", "phase", "code", "reason"),
    [(OUT_OF_MEMORY, "Failed", 137, "OOMKilled"), (COMPLETE, "Succeeded", 0, "Completed")],
)
def test_kwok_plays_the_end_of_a_container(
    cluster: KubeCluster, namespace: str, *, annotation: str, phase: str, code: int, reason: str
) -> None:
    cluster.apply(build_pod("short", namespace, annotations={annotation: "0.1s", SLOW_PULL: "0.1s"}))
    cluster.wait_for("pod/short", f"jsonpath={{.status.phase}}={phase}", namespace=namespace)
    ended = container_state(cluster, "short", namespace)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)
