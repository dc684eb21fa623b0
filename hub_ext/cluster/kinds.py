"""The collections of the cluster that are watched.

Pure: no clock, no network.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What is watched."""

    PODS = "pods"
    OUTSIDE = "outside-pods"
    """Pods of other namespaces: they take room on nodes, and nothing else of them is kept."""
    NODES = "nodes"
    QUOTAS = "resourcequotas"
    LIMIT_RANGES = "limitranges"
    EVENTS = "events"
    WORKLOADS = "workloads"
