"""Prometheus, and an imitation of dcgm-exporter for each node that has GPUs.

The exporters know which pods hold which cards, as the real one does, and say that they are at rest until
`Exporter.follow` says what they do. What they cannot know is what the real one does not know: shares whose
resource was renamed. Pods and the host reach Prometheus at `Monitoring(cluster).prometheus.url`.
"""

from __future__ import annotations

from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import StateError
from tests.devcluster.gpu.node import GpuNode
from tests.devcluster.gpu.setup import InstalledCard
from tests.devcluster.monitoring import exporter, prometheus
from tests.devcluster.monitoring.attribution import Device, Kubelet, SliceDevice
from tests.devcluster.monitoring.dcgm import Card
from tests.devcluster.monitoring.exporter import Followed
from tests.devcluster.monitoring.scrape import build_config
from tests.devcluster.node import Node
from tests.devcluster.spec import Addon

PROGRAMS = prometheus.PROGRAMS
FOLDER = "monitoring"
EVERY_SECONDS = 1


class Monitoring:
    """The Prometheus and the exporters of a running cluster: any process of the host may make a handle."""

    def __init__(self, cluster: Cluster) -> None:
        if Addon.PROMETHEUS not in cluster.spec.addons:
            raise StateError(
                cluster.name, "has no Prometheus", "add `prometheus` to `addons` in the cluster file"
            )
        folder = cluster.state_dir / FOLDER
        address = f"{cluster.host_address}:{cluster.port('prometheus')}"
        self.prometheus = prometheus.Prometheus(
            f"http://{address}", folder / "prometheus.yaml", check=cluster.check
        )
        self.exporters = {
            node.name: exporter.Exporter(f"{cluster.host_address}:{cluster.port(process_name(node))}")
            for node in gpu_nodes(cluster)
        }
        """By the node's name."""


def prepare(cluster: Cluster) -> None:
    """Start all of them."""
    folder = cluster.state_dir / FOLDER
    folder.mkdir(exist_ok=True)
    monitoring = Monitoring(cluster)
    for node in gpu_nodes(cluster):
        exporter.start(
            cluster.processes,
            folder,
            address=monitoring.exporters[node.name].address,
            name=process_name(node),
            node=followed(cluster, node),
            logs=cluster.logs_dir,
        )
    job = exporter.job_of(*monitoring.exporters.values())
    prometheus.start(
        cluster.processes,
        folder,
        cluster.programs,
        address=monitoring.prometheus.url.removeprefix("http://"),
        config=build_config([job], every_seconds=EVERY_SECONDS),
        log=cluster.logs_dir / "prometheus.log",
    )


def gpu_nodes(cluster: Cluster) -> list[Node]:
    return [node for node in cluster.nodes.values() if node.spec.gpus is not None]


def process_name(node: Node) -> str:
    return f"dcgm-exporter-{node.name}"


def card_of(card: InstalledCard, node: Node) -> Card:
    """A card of the cluster file as the exporter names it."""
    bus = f"00000000:{card.pci_bus:02X}:00.0"
    return Card(index=card.index, uuid=card.uuid, model=card.product.name, bus=bus, node=node.name)


def followed(cluster: Cluster, node: Node) -> Followed:
    """A node's cards, and where its kubelet notes who holds them."""
    gpus = GpuNode(cluster, node)
    devices = tuple(
        Device(
            card=card_of(card, node),
            slices=tuple(
                SliceDevice(uuid=part.uuid, profile=part.profile.name, instance=part.gi)
                for part in card.instances
            ),
            shared="sharing" in gpus.setup.plugin,
        )
        for card in gpus.cards(gpus.setup)
    )
    checkpoint = node.kubelet_dir / "device-plugins" / "kubelet_internal_checkpoint"
    return Followed(kubelet=Kubelet(checkpoint=checkpoint, logs=node.pod_logs_dir), devices=devices)
