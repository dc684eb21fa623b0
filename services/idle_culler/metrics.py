"""What the idle-culler counts. Labels are our own words, never users.

Shell: keeps counters of this process.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from .limits import GpuKind
from .reasons import Reason
from .verdict import Verdict


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

    def show(self, judged: Iterable[tuple[Verdict, GpuKind, int]], up: Mapping[str, bool]) -> None:
        """Show the last pass; what is not there any more goes to nothing."""
        for gauge in (self.servers, self.devices, self.unattended, self.signals, self.held, self.source_up):
            gauge.clear()
        held: Counts[Reason] = Counts()
        for verdict, kind, devices in judged:
            self.servers.labels(verdict.told, verdict.reason, kind).inc()
            self.devices.labels(verdict.value, kind).inc(devices)
            if verdict.unattended:
                self.unattended.labels(kind).inc(devices)
            for one in verdict.signals:
                self.signals.labels(one.source, one.value, one.reason).inc()
            if verdict.held:
                held[verdict.held] += 1
        for reason, number in held.items():
            self.held.labels(reason).set(number)
        for source, is_up in up.items():
            self.source_up.labels(source).set(is_up)
