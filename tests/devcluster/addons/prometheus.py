"""Prometheus, and an imitation of dcgm-exporter for each node that has GPUs.

The exporters begin with all cards at rest and held by nobody, under the UUIDs that the device plugin hands
out. Pods and the host reach Prometheus at `Monitoring(cluster).prometheus.url`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import StateError
from tests.devcluster.gpu.node import GpuNode
from tests.devcluster.gpu.setup import InstalledCard
from tests.devcluster.monitoring import exporter, prometheus
from tests.devcluster.monitoring.dcgm import Card, Pod, Reading, Slice, Use, sliced_card, whole_card
from tests.devcluster.monitoring.scrape import build_config
from tests.devcluster.node import Node
from tests.devcluster.spec import Addon

PROGRAMS = prometheus.PROGRAMS
FOLDER = "monitoring"
EVERY_SECONDS = 1
REST = Use(engine=0, util=0, memory_mib=0)


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
        name, handle = process_name(node), monitoring.exporters[node.name]
        file = folder / f"{name}.address"
        argv = exporter.command(handle.address, file)
        exporter.listening(file, cluster.popen(name, argv, env=exporter.ENVIRONMENT))
        handle.show(*at_rest(cluster, node))
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


def slice_of(card: InstalledCard, gi: int, use: Use, *, pod: Pod | None = None) -> Slice:
    """One of a card's slices by the id of its GPU instance."""
    (instance,) = (instance for instance in card.instances if instance.gi == gi)
    return Slice(profile=instance.profile.name, instance=gi, use=use, pod=pod)


def at_rest(cluster: Cluster, node: Node) -> Iterator[Reading]:
    """A node's cards that do nothing and that nobody has."""
    gpus = GpuNode(cluster, node)
    for card in gpus.cards(gpus.setup):
        if card.mig:
            slices = (slice_of(card, instance.gi, REST) for instance in card.instances)
            yield from sliced_card(card_of(card, node), *slices)
        else:
            yield from whole_card(card_of(card, node), REST)
