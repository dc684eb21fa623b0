"""What is counted. Labels come from the catalog and from our own words, never from users.

Shell: keeps counters.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The service's own metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.submissions = Counter(
            "gpu_workspaces_handoff_submissions",
            "Submissions by what came of them: created, repeated, or the reason of the refusal.",
            ("kind", "outcome"),
            registry=registry,
        )
        self.seconds = Histogram(
            "gpu_workspaces_handoff_submit_seconds",
            "From the request until the cluster had the run, of submissions that were accepted.",
            registry=registry,
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )
        self.ended = Counter(
            "gpu_workspaces_handoff_runs_ended",
            "Runs by how they ended.",
            ("kind", "profile", "phase", "reason"),
            registry=registry,
        )
        self.runs = Gauge(
            "gpu_workspaces_handoff_runs",
            "Runs that have not ended, by where they are.",
            ("phase",),
            registry=registry,
        )
