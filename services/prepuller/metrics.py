"""What the prepuller counts. Labels come from the catalog, from registries and from our own words.

Shell: keeps counters of this process.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from .pods import PullPod
from .reasons import Reason, State
from .summary import Summary

BUCKETS: Final = (1, 5, 15, 30, 60, 120, 240, 480, 900, 1800, 3600)
"""Seconds: from an image that is nearly there to 20 GB over a slow link."""


class Metrics:
    """All metrics of the prepuller, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.nodes = Gauge(
            "gpu_workspaces_prepull_nodes",
            "Nodes that take workspaces now, by what is known of an image there.",
            ("pool", "image", "state"),
            registry=registry,
        )
        self.pulls = Counter(
            "gpu_workspaces_prepull_pulls",
            "Pulls that have ended; `reason` is empty for those that worked.",
            ("registry", "reason"),
            registry=registry,
        )
        self.seconds = Histogram(
            "gpu_workspaces_prepull_seconds",
            "How long images took that were not there yet.",
            ("registry",),
            buckets=BUCKETS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "gpu_workspaces_prepull_in_flight",
            "Pulls under way.",
            ("registry",),
            registry=registry,
        )
        self.waiting = Gauge(
            "gpu_workspaces_prepull_waiting",
            "Pulls that are wanted and do not begin now, by why.",
            ("hold",),
            registry=registry,
        )
        self.pins = Gauge(
            "gpu_workspaces_prepull_pins", "Images that are pinned to nodes.", registry=registry
        )
        self.calls = Counter(
            "gpu_workspaces_prepull_calls",
            "Pods that were made and deleted.",
            ("verb", "outcome"),
            registry=registry,
        )

    def count_failure(self, registry: str, reason: Reason) -> None:
        """Count a pull that failed."""
        self.pulls.labels(registry, reason.value).inc()

    def count_pull(self, registry: str, pod: PullPod) -> None:
        """Count a pull that worked."""
        self.pulls.labels(registry, "").inc()
        if pod.seconds is not None:
            self.seconds.labels(registry).observe(pod.seconds)

    def hide(self) -> None:
        """Show nothing: nothing is in sight."""
        for gauge in (self.nodes, self.in_flight, self.waiting):
            gauge.clear()

    def show(self, summary: Summary) -> None:
        """Show a moment; what is not there any more is not shown any more."""
        self.hide()
        for one in summary.images:
            for state in State:
                self.nodes.labels(one.pool, one.want.image, state.value).set(one.states.get(state, 0))
        for registry, number in summary.in_flight.items():
            self.in_flight.labels(registry).set(number)
        for hold, number in summary.holds.items():
            self.waiting.labels(hold).set(number)
        self.pins.set(summary.pins)
