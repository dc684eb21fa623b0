"""What the idle-culler counts. Labels are our own words, never users.

Shell: keeps counters of this process.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge

from .facts import PodFacts
from .limits import gpu_kind
from .verdict import Verdict

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Servers of one pass by the labels of their metrics."""

    servers: Counts[Labels] = field(default_factory=Counts)
    devices: Counts[Labels] = field(default_factory=Counts)
    signals: Counts[Labels] = field(default_factory=Counts)
    unattended: Counts[Labels] = field(default_factory=Counts)
    held: Counts[Labels] = field(default_factory=Counts)


class CullerMetrics:
    """All metrics of the idle-culler, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.servers = Gauge(
            "gpu_workspaces_culler_servers",
            "Servers by what is about to happen to them, why, and which kind of GPU they hold.",
            ("state", "reason", "gpu"),
            registry=registry,
        )
        self.devices = Gauge(
            "gpu_workspaces_culler_devices",
            "GPUs, slices and shares that servers hold, by whether they work: busy, idle or unknown.",
            ("value", "gpu"),
            registry=registry,
        )
        self.signals = Gauge(
            "gpu_workspaces_culler_signals",
            "Servers by what each source says of them.",
            ("source", "value", "reason"),
            registry=registry,
        )
        self.unattended = Gauge(
            "gpu_workspaces_culler_unattended_devices",
            "GPUs, slices and shares of servers that work while nobody has them open.",
            ("gpu",),
            registry=registry,
        )
        self.held = Gauge(
            "gpu_workspaces_culler_held",
            "Stops that are due and do not happen, by reason.",
            ("reason",),
            registry=registry,
        )
        self.source_up = Gauge(
            "gpu_workspaces_culler_source_up",
            "1 while a source of signals answers.",
            ("source",),
            registry=registry,
        )
        self.warnings = Counter(
            "gpu_workspaces_culler_warnings",
            "Warnings that were given, by the limit that they are of.",
            ("limit",),
            registry=registry,
        )
        self.stops = Counter(
            "gpu_workspaces_culler_stops",
            "Stops, by why and by what came of them.",
            ("reason", "outcome"),
            registry=registry,
        )
        self.keeps = Counter(
            "gpu_workspaces_culler_keeps", "Times that users pressed Keep.", registry=registry
        )
        self.reports = Counter(
            "gpu_workspaces_culler_reports", "Reports that workspaces have sent.", registry=registry
        )

    def show(self, tally: Tally, up: Mapping[str, bool]) -> None:
        """Show the last pass; what is not there any more goes to nothing."""
        _set(self.servers, tally.servers)
        _set(self.devices, tally.devices)
        _set(self.unattended, tally.unattended)
        _set(self.signals, tally.signals)
        _set(self.held, tally.held)
        _set(self.source_up, {(source,): int(is_up) for source, is_up in up.items()})


def _set(gauge: Gauge, numbers: Mapping[Labels, int]) -> None:
    gauge.clear()
    for labels, number in numbers.items():
        gauge.labels(*labels).set(number)


def count(judged: Iterable[tuple[Verdict, PodFacts | None]]) -> Tally:
    """Count what was judged."""
    tally = Tally()
    for verdict, pod in judged:
        kind, devices = gpu_kind(pod), sum(pod.devices.values()) if pod else 0
        tally.servers[verdict.told, verdict.reason, kind] += 1
        tally.devices[verdict.value, kind] += devices
        if verdict.unattended:
            tally.unattended[kind,] += devices
        for one in verdict.signals:
            tally.signals[one.source, one.value, one.reason] += 1
        if verdict.held:
            tally.held[verdict.held,] += 1
    return tally
