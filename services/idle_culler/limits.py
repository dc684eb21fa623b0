"""The limits of one server at one moment, and which kind of GPU it holds.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hub_ext.gpu.resources import MIG_PREFIX, SHARED_SUFFIX
from hub_ext.gpu.sharing import Sharing

from .facts import PodFacts


class GpuKind(StrEnum):
    """What a server holds, from cheap to dear."""

    NONE = "none"
    SHARED = "shared"
    """One of several shares of a card."""
    MIG = "mig"
    """One or more slices of a card."""
    FULL = "full"
    """One whole card."""
    SEVERAL = "several"
    """Several whole cards."""


def gpu_kind(pod: PodFacts | None) -> GpuKind:
    """Say which kind of GPU a pod holds; a pod that is not known is taken to hold none."""
    if pod is None or not (count := sum(pod.devices.values())):
        return GpuKind.NONE
    if pod.sharing in {Sharing.TIME_SLICING, Sharing.MPS} or any(
        name.endswith(SHARED_SUFFIX) for name in pod.devices
    ):
        return GpuKind.SHARED
    if pod.sharing == Sharing.MIG or any(name.startswith(MIG_PREFIX) for name in pod.devices):
        return GpuKind.MIG
    return GpuKind.FULL if count == 1 else GpuKind.SEVERAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What holds for one server. Spans are in seconds."""

    known: bool = True
    """False for a server of which nobody knows what holds: its pod is not seen."""
    idle: float | None = None
    """None for never."""
    session: float | None = None
    """None for never."""
    warn_before: tuple[float, ...] = (1800.0, 600.0, 120.0)
    """Longest first."""
    keep_for: float = 3600.0
    keeps: int = 4
    ignore_open_tabs: bool = True
    metrics_stand_in: bool = True
    """Without an agent, the processors and the hub's activity may say that nobody works."""
    hub_stands_in: bool = False
    """Without an agent, the hub's activity alone may."""
    agent_cap: float | None = 28800.0
    stuck_after: float = 7200.0
    save_within: float = 60.0
    unsaved_delay: float = 3600.0

    def warnings(self, limit: float) -> tuple[float, ...]:
        """Give the warnings that fit into a limit, at least one: nobody is stopped without."""
        return tuple(one for one in self.warn_before if one < limit) or (limit / 2,)
