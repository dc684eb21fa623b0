"""What users are told while they wait, from what real kubelets, runtimes and device plugins say."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hub_ext.cluster.events import Event, read_event
from hub_ext.cluster.nodes import read_node
from hub_ext.cluster.phases import Phase, split
from hub_ext.cluster.pods import read_pod
from hub_ext.cluster.waiting import explain
from hub_ext.cluster.waits import Around, Place, Stage, Usual, Wait, WaitReason
from hub_ext.quota.verdicts import Fault as Whose
from tests.devcluster.addons.faults import Fault, Kind
from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.nodes.acting import wait_for_event, wait_until_ready, wait_while, with_image
from tests.nodes.pods import HELPER, build_pod

NODE = "cpu-1"
NAME = "workspace"
PADDING = 4 << 20


@pytest.fixture
def registry(cluster: Cluster) -> Iterator[Registry]:
    registry = Registry(cluster)
    yield registry
    registry.faults.clear()


@pytest.fixture
def fresh(registry: Registry) -> str:
    """Reference of an image that was never pulled."""
    return registry.publish_variant(HELPER, mark=secrets.token_hex(4), padding_bytes=PADDING)


def pod_of(namespace: str, image: str = "", **more: Any) -> dict[str, Any]:
    pod = build_pod(NAME, namespace, node=NODE)
    pod["spec"] |= more
    return with_image(pod, image) if image else pod


def seen(cluster: Cluster, namespace: str) -> tuple[Any, list[Event], datetime]:
    """The pod, its events and the time."""
    now = datetime.now(UTC)
    items = cluster.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    events = [event for item in items if (event := read_event(item, now)) and event.object_name == NAME]
    pod = read_pod(cluster.get(f"/api/v1/namespaces/{namespace}/pods/{NAME}"))
    return pod, sorted(events, key=lambda event: (event.last.replace(microsecond=0), event.version)), now


def wait_until_told(cluster: Cluster, namespace: str, reason: WaitReason, **around: Any) -> Wait:
    """Wait until the pod is judged so."""
    told: list[Wait] = []

    def missing() -> str | None:
        pod, events, now = seen(cluster, namespace)
        told.append(explain(pod, events, Around(now=now, **around)))
        return None if told[-1].reason is reason else f"{told[-1].reason.value}: {told[-1].detail}"

    wait_while(cluster, missing, what=f"the wait to be told as {reason.value}")
    return told[-1]


# GPUs -------------------------------------------------------------------------------------------------------


def test_more_than_one_share_fails_at_once(cluster: Cluster, namespace: str) -> None:
    pod = build_pod(NAME, namespace, node="shared-1", limits={"nvidia.com/gpu.shared": "2"})
    pod["spec"]["restartPolicy"] = "Never"
    cluster.apply(pod)
    wait = wait_until_told(cluster, namespace, WaitReason.SHARE_REFUSED)
    assert (wait.fatal, wait.again, wait.fault) == (True, False, Whose.ADMIN)
    assert "asks for more than one share of a GPU (2)" in wait.text


def test_more_cards_than_any_node_has(cluster: Cluster, namespace: str) -> None:
    cluster.apply(build_pod(NAME, namespace, node="gpu-1", limits={"nvidia.com/gpu": "5"}))
    wait = wait_until_told(cluster, namespace, WaitReason.TOO_LARGE, place=Place(nodes=1, offering=0))
    assert wait.fatal
    assert "(too few GPUs)" in wait.text
    node = read_node(cluster.get("/api/v1/nodes/gpu-1"))
    assert node.usable["nvidia.com/gpu"] == 4


# Images -----------------------------------------------------------------------------------------------------


def test_an_image_that_does_not_exist(cluster: Cluster, namespace: str, registry: Registry) -> None:
    cluster.apply(pod_of(namespace, f"{registry.open_address}/devcluster/nothing:1"))
    wait = wait_until_told(cluster, namespace, WaitReason.IMAGE_NOT_FOUND)
    assert (wait.fatal, wait.fault, wait.stage) == (True, Whose.ADMIN, Stage.FAILED)
    assert "devcluster/nothing:1" in wait.text


def test_a_private_image_without_its_secret(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    cluster.apply(pod_of(namespace, registry.with_login(fresh), imagePullSecrets=[{"name": "forgotten"}]))
    wait = wait_until_told(cluster, namespace, WaitReason.IMAGE_ACCESS)
    assert wait.fatal
    assert "a pull secret of it does not exist" in wait.text


def test_a_private_image_with_a_wrong_password(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    cluster.apply(registry.pull_secret("wrong", namespace, password="guessed"))
    cluster.apply(pod_of(namespace, registry.with_login(fresh), imagePullSecrets=[{"name": "wrong"}]))
    wait = wait_until_told(cluster, namespace, WaitReason.IMAGE_ACCESS)
    assert wait.fatal
    assert "secret" not in wait.text


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"kind": Kind.BLOBS, "status": 503}, WaitReason.REGISTRY_UNREACHABLE),
        ({"kind": Kind.MANIFESTS, "status": 429}, WaitReason.REGISTRY_BUSY),
    ],
    ids=["503", "429"],
)
def test_a_registry_that_fails_is_told_and_waited_for(
    fault: dict[str, Any],
    reason: WaitReason,
    cluster: Cluster,
    namespace: str,
    registry: Registry,
    fresh: str,
) -> None:
    repository = fresh.partition("/")[2].partition("@")[0]
    registry.faults.set(Fault(repository=repository, **fault))
    cluster.apply(pod_of(namespace, fresh))
    wait = wait_until_told(cluster, namespace, reason)
    assert (wait.fatal, wait.warning, wait.stage) == (False, True, Stage.PULLING)


def test_a_registry_that_hangs_is_told_by_the_time_it_takes(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    repository = fresh.partition("/")[2].partition("@")[0]
    registry.faults.set(Fault(kind=Kind.BLOBS, repository=repository, hang=True))
    cluster.apply(pod_of(namespace, fresh))
    wait = wait_until_told(cluster, namespace, WaitReason.PULLING)
    assert (wait.stage, wait.fatal) == (Stage.PULLING, False)
    pod, events, now = seen(cluster, namespace)
    later = Around(now=now + timedelta(minutes=5), usual=Usual(pull=timedelta(seconds=2)))
    assert "the registry may be slow or not answer" in explain(pod, events, later).text
    registry.faults.clear()
    wait_until_told(cluster, namespace, WaitReason.RUNNING)


# Everything else --------------------------------------------------------------------------------------------


def test_what_it_refers_to_must_exist(cluster: Cluster, namespace: str, fresh: str) -> None:
    pod = pod_of(namespace, fresh)
    pod["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    cluster.apply(pod)
    wait = wait_until_told(cluster, namespace, WaitReason.CONFIG_MISSING)
    assert 'does not exist: configmap "settings".' in wait.text


def test_a_claim_that_does_not_exist(cluster: Cluster, namespace: str) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}}
    cluster.apply(pod_of(namespace, volumes=[volume]))
    wait = wait_until_told(cluster, namespace, WaitReason.VOLUME_MISSING)
    assert "A volume of this workspace does not exist: datasets." in wait.text


def test_too_little_memory_to_start(cluster: Cluster, namespace: str, fresh: str) -> None:
    pod = pod_of(namespace, fresh)
    pod["spec"]["containers"][0]["command"] = [
        "sh",
        "-c",
        "x=$(head -c 200m /dev/zero | tr '\\0' x); sleep 60",
    ]
    cluster.apply(pod)
    wait = wait_until_told(cluster, namespace, WaitReason.OUT_OF_MEMORY)
    assert (wait.fatal, wait.fault) == (True, Whose.USER)


def test_a_program_that_ends_again_and_again(cluster: Cluster, namespace: str, fresh: str) -> None:
    pod = pod_of(namespace, fresh)
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", "exit 3"]
    cluster.apply(pod)
    wait = wait_until_told(cluster, namespace, WaitReason.CRASHED)
    assert "exit code 3" in wait.text


def test_a_start_taken_apart(cluster: Cluster, namespace: str, fresh: str) -> None:
    cluster.apply(pod_of(namespace, fresh))
    wait_until_ready(cluster, namespace, NAME)
    wait_until_told(cluster, namespace, WaitReason.RUNNING)
    wait_for_event(cluster, namespace, NAME, "Started")  # a kubelet's events come in order, after the status
    pod, events, now = seen(cluster, namespace)
    node = read_node(cluster.get(f"/api/v1/nodes/{NODE}"))
    made = split(pod, events, requested=pod.created, ended=now, node=node)
    assert sum(made.parts.values(), timedelta(0)) == made.total
    assert made.warm is False
    (pull,) = made.pulls
    assert pull.size_bytes is not None
    assert pull.size_bytes > PADDING
    assert pull.took is not None
    assert Phase.WARM_UP in made.parts
    assert made.skewed == 0
