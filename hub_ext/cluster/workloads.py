"""Kueue's view of pods and jobs.

Source: `kueue.x-k8s.io/v1beta2` of Kueue v0.19; `v1beta1` has the same fields.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .pods import Condition, read_conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Kueue's view of a pod or a job."""

    uid: str
    owner_uid: str
    """Of the pod or job that it stands for."""
    queue: str
    conditions: tuple[Condition, ...]
    active: bool = True

    def condition(self, kind: str) -> Condition | None:
        """Give the condition of that type, if it is there."""
        return next((one for one in self.conditions if one.type == kind), None)


def read_workload(workload: Mapping[str, Any]) -> Workload:
    """Reduce a Workload of ``kueue.x-k8s.io`` in API spelling."""
    metadata, spec = workload["metadata"], workload.get("spec") or {}
    owners: list[dict[str, Any]] = metadata.get("ownerReferences") or [{}]
    return Workload(
        uid=metadata["uid"],
        owner_uid=owners[0].get("uid", ""),
        queue=spec.get("queueName") or "",
        conditions=read_conditions(workload.get("status") or {}),
        active=spec.get("active", True) is not False,
    )
