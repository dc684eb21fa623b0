"""What Prometheus scrapes, and how. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Labels = Mapping[str, str]


class Convention(StrEnum):
    """Under which labels the pod that holds a card is found; all three are in use."""

    EXPORTED = "exported"
    """`exported_pod`, for `pod` is the exporter's own, as with the GPU Operator's ServiceMonitor."""
    HONORED = "honored"
    """`pod`, with `honorLabels: true`; a line without a pod gets the *exporter's* pod and namespace."""
    STATIC = "static"
    """`pod`: the exporters are listed by address, and a line without a pod has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is scraped under one name."""

    name: str
    targets: Mapping[str, Labels]
    """By `host:port`, the labels of each as service discovery gives them."""
    honor_labels: bool = False
    """Whether a scraped label wins over one of the target; else it is kept as `exported_…`."""
    path: str = "/metrics"

    def stored(self, target: str, scraped: Labels) -> dict[str, str]:
        """The labels that Prometheus stores for a sample of one of the targets; an empty one is none."""
        own = {**self.targets[target], "job": self.name, "instance": target}
        if self.honor_labels:
            labels = {**own, **scraped}
        else:
            kept = {f"exported_{name}" if name in own else name: value for name, value in scraped.items()}
            labels = {**kept, **own}
        return {name: value for name, value in labels.items() if value}


def build_config(jobs: Sequence[Job], *, every_seconds: float) -> dict[str, Any]:
    """Build Prometheus's configuration; a target that says nothing for `every_seconds` is taken as down."""
    every = f"{round(every_seconds * 1000)}ms"
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "scrape_configs": [
            {
                "job_name": job.name,
                "metrics_path": job.path,
                "honor_labels": job.honor_labels,
                "static_configs": [
                    {"targets": [target], "labels": dict(labels)} for target, labels in job.targets.items()
                ],
            }
            for job in jobs
        ],
    }
