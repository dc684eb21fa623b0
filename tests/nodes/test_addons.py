"""What stands beside the nodes: metrics of their cards, and an object store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.devcluster.addons.object_store import store_of
from tests.devcluster.addons.prometheus import Monitoring, at_rest, card_of
from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.gpu.node import GpuNode
from tests.devcluster.monitoring import Exporter, Pod, Use, whole_card
from tests.nodes.acting import ask, wait_until_ready, with_image
from tests.nodes.pods import HELPER, build_pod

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def start_client(cluster: Cluster, namespace: str) -> None:
    image = Registry(cluster).publish_variant(HELPER, mark="addons")
    cluster.apply(with_image(build_pod("client", namespace, node="cpu-1"), image))
    wait_until_ready(cluster, namespace, "client")


def test_every_card_and_slice_has_metrics_under_its_own_uuid(cluster: Cluster) -> None:
    expected = set()
    for name in ("gpu-1", "mig-1", "shared-1"):
        node = GpuNode(cluster, cluster.node(name))
        for card in node.cards(node.setup):
            expected |= {(card.uuid, str(part.gi)) for part in card.instances} or {(card.uuid, "")}
    prometheus = Monitoring(cluster).prometheus
    prometheus.wait_for(f"count(count by (UUID, GPU_I_ID) ({ENGINE})) == {len(expected)}")
    metrics = [sample["metric"] for sample in prometheus.query(ENGINE)]
    assert {(labels["UUID"], labels.get("GPU_I_ID", "")) for labels in metrics} == expected
    assert {labels["pod"].rpartition("-")[0] for labels in metrics} == {"nvidia-dcgm-exporter"}


@pytest.fixture
def exporter(cluster: Cluster) -> Iterator[Exporter]:
    """The one of `gpu-1`; its cards are at rest again afterwards."""
    exporter = Monitoring(cluster).exporters["gpu-1"]
    yield exporter
    exporter.show(*at_rest(cluster, cluster.node("gpu-1")))


def test_a_pod_asks_prometheus_what_a_card_does(cluster: Cluster, namespace: str, exporter: Exporter) -> None:
    monitoring, node = Monitoring(cluster), GpuNode(cluster, cluster.node("gpu-1"))
    card, *_ = node.cards(node.setup)
    holder = Pod(namespace=namespace, name="holder")
    exporter.show(*whole_card(card_of(card, node.node), Use(engine=0.5), pod=holder))
    monitoring.prometheus.wait_for(f'{ENGINE}{{exported_namespace="{namespace}"}} == 0.5')
    start_client(cluster, namespace)
    answer = ask(
        cluster,
        namespace,
        "client",
        f"'{monitoring.prometheus.url}/api/v1/query?query={ENGINE}%7Bexported_pod%3D%22holder%22%7D'",
    )
    assert f'"UUID":"{card.uuid}"' in answer


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
