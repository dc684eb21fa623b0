"""What stands beside the nodes: metrics of their cards, and an object store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.devcluster.addons.object_store import store_of
from tests.devcluster.addons.prometheus import Monitoring
from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.gpu.node import GpuNode
from tests.devcluster.monitoring import Exporter, Pod, Use
from tests.nodes.acting import ask, run_in, wait_until_ready, wait_while, with_image
from tests.nodes.pods import HELPER, build_pod

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def helper(cluster: Cluster) -> str:
    return Registry(cluster).publish_variant(HELPER, mark="addons")


def start_client(cluster: Cluster, namespace: str) -> None:
    cluster.apply(with_image(build_pod("client", namespace, node="cpu-1"), helper(cluster)))
    wait_until_ready(cluster, namespace, "client")


def test_every_card_and_slice_has_metrics_under_its_own_uuid(cluster: Cluster) -> None:
    expected = set()
    for name in ("gpu-1", "mig-1", "shared-1"):
        node = GpuNode(cluster, cluster.node(name))
        for card in node.cards(node.setup):
            expected |= {(card.uuid, str(part.gi)) for part in card.instances} or {(card.uuid, "")}
    prometheus = Monitoring(cluster).prometheus

    def missing() -> str | None:
        # A scrape that took too long leaves nothing until the next one.
        metrics = [sample["metric"] for sample in prometheus.query(ENGINE)]
        found = {(labels["UUID"], labels.get("GPU_I_ID", "")) for labels in metrics}
        whose = {labels["pod"].rpartition("-")[0] for labels in metrics}
        return None if (found, whose) == (expected, {"nvidia-dcgm-exporter"}) else str(metrics)

    wait_while(cluster, missing, what="metrics of every card and slice")


@pytest.fixture
def exporter(cluster: Cluster) -> Iterator[Exporter]:
    """The one of `gpu-1`; its pods are at rest again afterwards."""
    exporter = Monitoring(cluster).exporters["gpu-1"]
    yield exporter
    exporter.follow()


def test_a_card_is_its_pod_s_for_as_long_as_the_pod_is_there(
    cluster: Cluster, namespace: str, exporter: Exporter
) -> None:
    prometheus, series = Monitoring(cluster).prometheus, f'{ENGINE}{{exported_namespace="{namespace}"}}'
    pod = build_pod("holder", namespace, node="gpu-1", limits={"nvidia.com/gpu": "1"})
    cluster.apply(with_image(pod, helper(cluster)))
    wait_until_ready(cluster, namespace, "holder")
    (sample,) = prometheus.wait_for(series)
    assert (sample["metric"]["exported_pod"], sample["metric"]["exported_container"]) == ("holder", "main")
    assert sample["metric"]["UUID"] == run_in(cluster, namespace, "holder", "echo $NVIDIA_VISIBLE_DEVICES")
    exporter.follow({Pod(namespace=namespace, name="holder"): Use(engine=0.5)})
    prometheus.wait_for(f"{series} == 0.5")
    cluster.kubectl("delete", "pod", "holder", f"--namespace={namespace}")
    prometheus.wait_for(f"absent({series})")


def test_pods_reach_prometheus(cluster: Cluster, namespace: str) -> None:
    start_client(cluster, namespace)
    url = f"{Monitoring(cluster).prometheus.url}/api/v1/query?query=1%2B1"
    assert '"success"' in ask(cluster, namespace, "client", f"'{url}'")


class TestObjectStore:
    @pytest.fixture
    def cluster(self, batch_cluster: Cluster) -> Cluster:
        return batch_cluster

    def test_pods_reach_it(self, cluster: Cluster, namespace: str) -> None:
        store = store_of(cluster)
        store.make_bucket(namespace)
        s3, where = store.client(), {"Bucket": namespace, "Key": "for-pods"}
        s3.put_object(**where, Body=b"hello")
        start_client(cluster, namespace)
        url = s3.generate_presigned_url("get_object", Params=where, ExpiresIn=3600)
        assert ask(cluster, namespace, "client", f"'{url}'") == "hello"
