"""Pulls through a registry with a login and a proxy that spoils its answers, in the kubelet's own words."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.devcluster.addons.faults import Fault, Kind
from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.nodes.acting import events, wait_for_event, wait_until_ready, wait_while, with_image
from tests.nodes.pods import HELPER, build_pod

NODE = "cpu-1"
PADDING = 4 << 20
FAILED = "Failed"


@pytest.fixture
def registry(cluster: Cluster) -> Iterator[Registry]:
    registry = Registry(cluster)
    yield registry
    registry.faults.clear()


@pytest.fixture
def fresh(registry: Registry) -> str:
    """Reference of an image that was never pulled, with a layer of 4 MiB."""
    return registry.publish_variant(HELPER, mark=secrets.token_hex(4), padding_bytes=PADDING)


def pod_of(image: str, namespace: str, *, name: str = "puller", secret: str = "") -> dict[str, Any]:
    pod = with_image(build_pod(name, namespace, node=NODE), image)
    if secret:
        pod["spec"]["imagePullSecrets"] = [{"name": secret}]
    return pod


def repository(image: str) -> str:
    """The repository of a reference by digest."""
    return image.partition("/")[2].partition("@")[0]


def test_a_pull_says_how_much_it_pulled(cluster: Cluster, namespace: str, fresh: str) -> None:
    cluster.apply(pod_of(fresh, namespace))
    wait_until_ready(cluster, namespace, "puller")
    message = wait_for_event(
        cluster, namespace, "puller", "Pulled", f'Successfully pulled image "{fresh}" in '
    )
    size = int(message.partition("Image size: ")[2].partition(" ")[0])
    assert PADDING < size < PADDING + (4 << 20), "the layer is not compressed, busybox is about a megabyte"


def test_a_pulled_image_is_there_for_the_next_pod(cluster: Cluster, namespace: str, fresh: str) -> None:
    for name in ("first", "second"):
        cluster.apply(pod_of(fresh, namespace, name=name))
        wait_until_ready(cluster, namespace, name)
    wait_for_event(cluster, namespace, "second", "Pulled", fresh, "already present on machine")

    def missing() -> str | None:
        names = [image["names"] for image in cluster.get(f"/api/v1/nodes/{NODE}")["status"]["images"]]
        return None if [fresh] in names else f"{NODE} has {names}"

    wait_while(cluster, missing, what="the node to list its new image")


def test_an_unknown_image_is_not_found(cluster: Cluster, namespace: str, registry: Registry) -> None:
    image = f"{registry.open_address}/devcluster/nothing:1"
    cluster.apply(pod_of(image, namespace))
    message = wait_for_event(cluster, namespace, "puller", FAILED, f'Failed to pull image "{image}"')
    assert "code = NotFound" in message
    assert message.endswith(f"{image}: not found")
    wait_for_event(cluster, namespace, "puller", FAILED, "Error: ErrImagePull")
    wait_for_event(cluster, namespace, "puller", "BackOff", f'Back-off pulling image "{image}"')


def test_without_a_login_access_is_denied(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    cluster.apply(pod_of(registry.with_login(fresh), namespace))
    denied = "pull access denied, repository does not exist or may require authorization"
    wait_for_event(cluster, namespace, "puller", FAILED, denied, "no basic auth credentials")


def test_a_wrong_password_is_refused(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    cluster.apply(registry.pull_secret("wrong", namespace, password="guessed"))
    cluster.apply(pod_of(registry.with_login(fresh), namespace, secret="wrong"))
    wait_for_event(cluster, namespace, "puller", FAILED, "401 Unauthorized")


def test_who_logs_in_pulls_and_others_still_may_not(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    image = registry.with_login(fresh)
    cluster.apply(registry.pull_secret("right", namespace))
    cluster.apply(pod_of(image, namespace, name="insider", secret="right"))
    wait_until_ready(cluster, namespace, "insider")
    cluster.apply(pod_of(image, namespace, name="outsider"))
    wait_for_event(cluster, namespace, "outsider", FAILED, "pull access denied")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"kind": Kind.BLOBS, "status": 503}, "503 Service Unavailable"),
        ({"kind": Kind.MANIFESTS, "status": 429}, "429 Too Many Requests"),
        ({"kind": Kind.MANIFESTS, "status": 401}, "401 Unauthorized"),
    ],
    ids=["blobs-503", "manifests-429", "manifests-401"],
)
def test_a_failing_registry_fails_the_pull(
    fault: dict[str, Any], words: str, cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    registry.faults.set(Fault(repository=repository(fresh), **fault))
    cluster.apply(pod_of(fresh, namespace))
    wait_for_event(cluster, namespace, "puller", FAILED, fresh, words)


def test_a_failed_pull_is_tried_again(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    registry.faults.set(Fault(kind=Kind.BLOBS, repository=repository(fresh), status=503))
    cluster.apply(pod_of(fresh, namespace))
    wait_for_event(cluster, namespace, "puller", FAILED, fresh)
    registry.faults.clear()
    wait_until_ready(cluster, namespace, "puller")


def test_a_cut_layer_is_fetched_on_from_where_it_broke(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    fault = Fault(kind=Kind.BLOBS, repository=repository(fresh), cut_after_bytes=PADDING // 2, times=1)
    registry.faults.set(fault)
    cluster.apply(pod_of(fresh, namespace))
    wait_until_ready(cluster, namespace, "puller")
    assert FAILED not in events(cluster, namespace, "puller")


def test_a_hanging_pull_goes_on_when_the_registry_does(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    registry.faults.set(Fault(kind=Kind.BLOBS, repository=repository(fresh), hang=True))
    cluster.apply(pod_of(fresh, namespace))
    wait_for_event(cluster, namespace, "puller", "Pulling", fresh)

    def missing() -> str | None:
        status = cluster.get(f"/api/v1/namespaces/{namespace}/pods/puller")["status"]
        states = [container["state"] for container in status.get("containerStatuses", [])]
        return None if states == [{"waiting": {"reason": "ContainerCreating"}}] else f"states {states}"

    wait_while(cluster, missing, what="the pod to say that it waits")
    registry.faults.clear()
    wait_until_ready(cluster, namespace, "puller")


def test_a_slow_pull_ends_soon_after_the_registry_is_fast_again(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    registry.faults.set(Fault(kind=Kind.BLOBS, repository=repository(fresh), bytes_per_second=1000))
    cluster.apply(pod_of(fresh, namespace))
    wait_for_event(cluster, namespace, "puller", "Pulling", fresh)
    assert "Pulled" not in events(cluster, namespace, "puller"), "it would take more than an hour"
    registry.faults.clear()
    wait_until_ready(cluster, namespace, "puller")


def test_a_withdrawn_pod_with_a_hanging_pull_goes_when_the_pull_ends(
    cluster: Cluster, namespace: str, registry: Registry, fresh: str
) -> None:
    registry.faults.set(Fault(kind=Kind.MANIFESTS, repository=repository(fresh), hang=True))
    cluster.apply(pod_of(fresh, namespace))
    wait_for_event(cluster, namespace, "puller", "Pulling", fresh)
    cluster.kubectl("delete", "pod", "puller", f"--namespace={namespace}", "--wait=false")
    path = f"/api/v1/namespaces/{namespace}/pods"
    assert [pod["metadata"]["name"] for pod in cluster.get(path)["items"]] == ["puller"]
    registry.faults.clear()
    wait_while(cluster, lambda: "it is there" if cluster.get(path)["items"] else None, what="the pod to go")
