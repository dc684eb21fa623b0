"""GPUs on real nodes: what NVIDIA's device plugin offers, hands out and refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.control import Verb
from tests.devcluster.gpu.node import PLUGIN, GpuNode
from tests.devcluster.gpu.setup import GpuSetup
from tests.devcluster.waiting import until
from tests.nodes.gpu_setups import SETUPS, Expected
from tests.nodes.pods import HELPER, build_pod

FALLEN_OFF_THE_BUS = 79
"""Xid that makes the plugin give a card up; NVIDIA's "Xid Errors" table."""
DEVICES = "NVIDIA_VISIBLE_DEVICES"


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    """An image with a shell, pulled from the cluster's registry."""
    return Registry(cluster).publish_variant(HELPER, mark="gpus")


@pytest.fixture
def gpu_1(cluster: Cluster) -> GpuNode:
    return GpuNode(cluster, cluster.node("gpu-1"))


@pytest.fixture
def switch(gpu_1: GpuNode) -> Iterator[Callable[[Expected], GpuNode]]:
    """Give `gpu-1` another set-up until the test ends."""

    def to(expected: Expected) -> GpuNode:
        gpu_1.switch(expected.setup)
        wait_until_offers(gpu_1, expected.offers)
        return gpu_1

    yield to
    gpu_1.switch(gpu_1.setup)
    wait_until_offers(gpu_1, {"nvidia.com/gpu": len(gpu_1.setup.cards)})


def wait_until_offers(node: GpuNode, offers: dict[str, int]) -> None:
    def missing() -> str | None:
        seen = {name: count for name, count in node.allocatable().items() if count}
        return None if seen == offers else f"offers {seen}, not {offers}"

    until(missing, what=f"GPUs of {node.node.name}", check=node.cluster.check)


def gpu_pod(name: str, namespace: str, *, node: str, image: str, limits: dict[str, int]) -> dict[str, Any]:
    """A pod on one node that asks for devices and stays."""
    pod = build_pod(name, namespace, node=node, limits={key: str(value) for key, value in limits.items()})
    pod["spec"]["restartPolicy"] = "Never"
    pod["spec"]["containers"][0] |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    return pod


def devices(cluster: Cluster, namespace: str, pod: str) -> set[str]:
    """The devices that a running pod was given, as its container sees them."""
    cluster.wait_for(f"pod/{pod}", "condition=Ready", namespace=namespace)
    value = cluster.kubectl("exec", f"--namespace={namespace}", pod, "--", "sh", "-c", f"echo ${DEVICES}")
    return set(value.strip().split(","))


def refusal(cluster: Cluster, namespace: str, pod: str) -> dict[str, Any]:
    """The status of a pod that a kubelet refused."""
    cluster.wait_for(f"pod/{pod}", "jsonpath={.status.phase}=Failed", namespace=namespace)
    status: dict[str, Any] = cluster.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")["status"]
    return status


def test_each_node_offers_what_the_cluster_file_says(cluster: Cluster) -> None:
    offers = {
        "gpu-1": {"nvidia.com/gpu": 4},
        "mig-1": {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.18gb": 3, "nvidia.com/mig-3g.71gb": 1},
        "shared-1": {"nvidia.com/gpu.shared": 8},
    }
    for name, offered in offers.items():
        wait_until_offers(GpuNode(cluster, cluster.node(name)), offered)


def test_whole_cards_are_handed_out_once(
    cluster: Cluster, namespace: str, gpu_1: GpuNode, image: str
) -> None:
    for name, count in (("one", 1), ("three", 3)):
        cluster.apply(gpu_pod(name, namespace, node="gpu-1", image=image, limits={"nvidia.com/gpu": count}))
    one, three = (devices(cluster, namespace, name) for name in ("one", "three"))
    assert (len(one), len(three)) == (1, 3)
    assert one | three == {card.uuid for card in gpu_1.cards(gpu_1.setup)}


def test_a_slice_is_a_device_of_its_own(cluster: Cluster, namespace: str, image: str) -> None:
    node = GpuNode(cluster, cluster.node("mig-1"))
    whole, cut = node.cards(node.setup)
    wanted = {"small": "nvidia.com/mig-1g.18gb", "large": "nvidia.com/mig-3g.71gb", "whole": "nvidia.com/gpu"}
    for name, resource in wanted.items():
        cluster.apply(gpu_pod(name, namespace, node="mig-1", image=image, limits={resource: 1}))
    *small, large = (instance.uuid for instance in cut.instances)
    assert devices(cluster, namespace, "small") < set(small)
    assert devices(cluster, namespace, "large") == {large}
    assert devices(cluster, namespace, "whole") == {whole.uuid}


def test_a_share_is_a_whole_card_to_its_pod(cluster: Cluster, namespace: str, image: str) -> None:
    node = GpuNode(cluster, cluster.node("shared-1"))
    cards = {card.uuid for card in node.cards(node.setup)}
    names = [f"share-{number}" for number in range(8)]
    for name in names:
        pod = gpu_pod(name, namespace, node="shared-1", image=image, limits={"nvidia.com/gpu.shared": 1})
        cluster.apply(pod)
    given = [devices(cluster, namespace, name) for name in names]
    assert [len(device) for device in given] == [1] * 8
    assert set.union(*given) == cards


def test_two_shares_are_refused_in_nvidia_s_words(cluster: Cluster, namespace: str, image: str) -> None:
    limits = {"nvidia.com/gpu.shared": 2}
    cluster.apply(gpu_pod("greedy", namespace, node="shared-1", image=image, limits=limits))
    status = refusal(cluster, namespace, "greedy")
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"] == (
        "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = "
        'invalid allocation request for "nvidia.com/gpu.shared": '
        "invalid request: maximum request size for shared resources is 1; found 2, which is unexpected"
    )
    assert "containerStatuses" not in status


@pytest.mark.parametrize("name", [name for name in SETUPS if name != "whole"])
def test_a_node_offers_what_its_set_up_makes_of_its_cards(
    name: str, cluster: Cluster, switch: Callable[[Expected], GpuNode]
) -> None:
    expected = SETUPS[name]
    node = switch(expected)
    labels = cluster.get(f"/api/v1/nodes/{node.node.name}")["metadata"]["labels"]
    found = {
        label: labels[label]
        for label in labels
        if label in expected.labels or label.startswith("nvidia.com/mig")
    }
    assert found == expected.labels


def test_lax_shares_are_more_of_the_same_card(
    cluster: Cluster, namespace: str, image: str, switch: Callable[[Expected], GpuNode]
) -> None:
    node = switch(SETUPS["shared-lax"])
    for name, count in (("two", 2), ("three", 3)):
        pod = gpu_pod(name, namespace, node="gpu-1", image=image, limits={"nvidia.com/gpu": count})
        cluster.apply(pod)
    cards = {card.uuid for card in node.cards(SETUPS["shared-lax"].setup)}
    assert devices(cluster, namespace, "two") <= cards
    assert devices(cluster, namespace, "three") <= cards, "three shares are at most two cards"


def test_an_mps_share_gets_the_control_daemon_s_pipe(
    cluster: Cluster, namespace: str, image: str, switch: Callable[[Expected], GpuNode]
) -> None:
    switch(SETUPS["mps"])
    pod = gpu_pod("share", namespace, node="gpu-1", image=image, limits={"nvidia.com/gpu": 1})
    greedy = gpu_pod("greedy", namespace, node="gpu-1", image=image, limits={"nvidia.com/gpu": 2})
    cluster.apply(pod, greedy)
    assert len(devices(cluster, namespace, "share")) == 1
    script = 'ls "$CUDA_MPS_PIPE_DIRECTORY"; cat "$CUDA_MPS_PIPE_DIRECTORY"/control.percentage'
    seen = cluster.kubectl("exec", f"--namespace={namespace}", "share", "--", "sh", "-c", script)
    assert "control.memory.0" in seen
    assert seen.splitlines()[-1] == "25", "a quarter of the card's threads for each of four clients"
    assert (
        "maximum request size for shared resources is 1" in refusal(cluster, namespace, "greedy")["message"]
    )


def test_unequal_slices_under_single_say_why(gpu_1: GpuNode, switch: Callable[[Expected], GpuNode]) -> None:
    switch(SETUPS["single-unequal"])
    log = gpu_1.node.logs_dir / f"{PLUGIN}.log"

    def missing() -> str | None:
        said = "more than one MIG device type present on node" in log.read_text()
        return None if said else "the plugin did not say so"

    until(missing, what="the plugin's complaint")


def test_a_card_with_an_xid_is_not_offered_until_the_plugin_starts_again(
    cluster: Cluster, namespace: str, gpu_1: GpuNode, image: str
) -> None:
    cluster.apply(gpu_pod("holder", namespace, node="gpu-1", image=image, limits={"nvidia.com/gpu": 4}))
    cards = gpu_1.cards(gpu_1.setup)
    assert devices(cluster, namespace, "holder") == {card.uuid for card in cards}
    gpu_1.machine.report_xid(2, FALLEN_OFF_THE_BUS)
    try:
        wait_until_offers(gpu_1, {"nvidia.com/gpu": 3})
        path = f"/api/v1/namespaces/{namespace}/pods/holder"

        def missing() -> str | None:
            (container,) = cluster.get(path)["status"]["containerStatuses"]
            health = {
                device["resourceID"]: device["health"]
                for status in container.get("allocatedResourcesStatus", [])
                for device in status["resources"]
            }
            wanted = {card.uuid: "Unhealthy" if card.index == 2 else "Healthy" for card in cards}
            return None if health == wanted else f"the pod's devices are {health}"

        until(missing, what="the pod to show the lost card")
    finally:
        gpu_1.control(Verb.START)
        wait_until_offers(gpu_1, {"nvidia.com/gpu": 4})


def test_without_its_plugin_a_node_offers_zero(gpu_1: GpuNode) -> None:
    gpu_1.control(Verb.STOP)
    try:
        wait_until_offers(gpu_1, {})
        assert gpu_1.allocatable()["nvidia.com/gpu"] == 0, "the resource stays, as zero"
    finally:
        gpu_1.control(Verb.START)
        wait_until_offers(gpu_1, {"nvidia.com/gpu": 4})


def test_a_set_up_of_another_product_is_another_machine(
    cluster: Cluster, switch: Callable[[Expected], GpuNode]
) -> None:
    setup = GpuSetup.model_validate({"product": "A100-40GB", "cards": 1})
    node = switch(Expected(name="a100", setup=setup, labels={}, offers={"nvidia.com/gpu": 1}))
    labels = cluster.get(f"/api/v1/nodes/{node.node.name}")["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert labels["nvidia.com/gpu.memory"] == "40960"
