"""What the hub counts about workspaces, on the hub's own `/hub/metrics`.

Labels come from the catalog and from our own words, never from users: their number is bounded. JupyterHub
depends on prometheus_client itself.

Shell: keeps counters of this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from .cluster.starts import Outcome, StartRecord
from .cluster.watch import Health

BUCKETS: Final = (2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1200, 1800)
"""Seconds: from a warm start to a new node with a large image."""


class Metrics:
    """All metrics of the bundle, in one registry."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.starts = Counter(
            "gpu_workspaces_starts",
            "Starts by how they ended; `reason` is empty for those that started.",
            ("profile", "pool", "outcome", "reason"),
            registry=registry,
        )
        self.start_seconds = Histogram(
            "gpu_workspaces_start_seconds",
            "From the request until the server answered, of starts that succeeded.",
            ("profile", "pool"),
            buckets=BUCKETS,
            registry=registry,
        )
        self.phase_seconds = Histogram(
            "gpu_workspaces_start_phase_seconds",
            "The same time by phase; the phases of one start add up to its whole.",
            ("pool", "phase"),
            buckets=BUCKETS,
            registry=registry,
        )
        self.refusals = Counter(
            "gpu_workspaces_refusals",
            "Starts that were refused, by reason.",
            ("profile", "reason"),
            registry=registry,
        )
        self.promised = Gauge(
            "gpu_workspaces_promised_starts",
            "Starts that hold a reservation and have no pod in sight yet.",
            registry=registry,
        )
        self.watch = Gauge(
            "gpu_workspaces_watch_health",
            "1 for the state that each watched collection is in.",
            ("source", "health"),
            registry=registry,
        )

    def count_start(self, record: StartRecord) -> None:
        """Count one start that has ended; those that the user gave up tell nothing about the time."""
        self.starts.labels(record.profile, record.pool, record.outcome.value, record.reason).inc()
        if record.outcome is not Outcome.STARTED:
            return
        self.start_seconds.labels(record.profile, record.pool).observe(record.seconds)
        for phase, seconds in record.phases.items():
            self.phase_seconds.labels(record.pool, phase).observe(seconds)

    def count_refusal(self, reason: str, *, profile: str = "") -> None:
        """Count one start that was refused; leave `profile` empty for one that the catalog does not have."""
        self.refusals.labels(profile, reason).inc()

    def show_watch(self, health: Mapping[str, Health]) -> None:
        """Show how well each watched collection is known."""
        for source, state in health.items():
            for one in Health:
                self.watch.labels(source, one.value).set(one is state)
