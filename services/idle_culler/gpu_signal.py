"""GPUs as Prometheus knows them, independently of the user.

Source of the rules: `DCGM_FI_DEV_GPU_UTIL` is not provided for slices of a card; either meter can be stuck at
zero; a window's largest value also comes from an exporter that died in it.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final

from .facts import Facts, GpuFacts, GpuReading
from .limits import GpuKind, gpu_kind
from .policy import Thresholds
from .reasons import Reason
from .signal import Signal, Source, Value, is_old, window_start

CONTRADICTION: Final = 0.5
"""Where one of two meters of a card shows nothing and the other more than this, one of them is broken."""

Judged = tuple[Value, Reason]


def gpu_signal(facts: Facts, thresholds: Thresholds) -> Signal:
    """Judge all GPUs of the pod: idle only if each of them is, for the whole window."""
    readings = facts.gpu
    if facts.pod is None:
        return Signal(source=Source.GPU, value=Value.UNKNOWN, reason=Reason.NO_POD)
    if readings is None or is_old(readings.at, facts.at, thresholds.stale_after):
        return Signal(source=Source.GPU, value=Value.UNKNOWN, reason=Reason.NO_METRICS)
    asked, kind = sum(facts.pod.devices.values()), gpu_kind(facts.pod)
    judged = [judge_gpu(one, thresholds, of_slices=kind is GpuKind.MIG) for one in readings.gpus]
    value, reason = _all(readings, judged, _cards(facts, asked) if kind is GpuKind.SHARED else asked)
    total = max(asked, len(judged))
    number = sum(one is value for one, _ in judged) if judged else 0
    since = window_start(facts, readings.at, readings.window_seconds) if value is Value.IDLE else None
    return Signal(
        source=Source.GPU,
        value=value,
        reason=reason,
        at=readings.at,
        since=since,
        subject=f"{number} of {total}" if total > 1 else "",
    )


def _cards(facts: Facts, shares: int) -> int:
    """Say of how many cards some shares are: several may be of one, and only the workspace sees which."""
    seen = len(facts.agent.gpu_use) if facts.agent else 0
    return min(seen, shares) if seen else shares


def _all(readings: GpuFacts, judged: list[Judged], least: int) -> Judged:
    """Give what the single GPUs come to: any that works, else any that is not known, else idle."""
    if not judged:
        return Value.UNKNOWN, Reason.LABELS_BROKEN if readings.labels_broken else Reason.NO_GPU_READINGS
    for wanted in (Value.BUSY, Value.UNKNOWN):
        found = next((one for one in judged if one[0] is wanted), None)
        if found is not None:
            return found
    if len(judged) < least:
        return Value.UNKNOWN, Reason.GPUS_MISSING
    return Value.IDLE, Reason.GPU_QUIET


def judge_gpu(reading: GpuReading, thresholds: Thresholds, *, of_slices: bool = False) -> Judged:
    """Judge one card or slice.

    The largest value of the window decides, not the mean: one burst in half an hour is work.

    Parameters
    ----------
    of_slices
        The pod holds slices, whether or not the reading says of which.
    """
    found = [
        None if reading.shared else reading.engine,
        None if reading.slice or of_slices else reading.utilization,
    ]
    meters = [one for one in found if one is not None and one >= 0]  # less than nothing is no measurement
    reason = _doubt(reading, meters, thresholds)
    if reason in _EVEN_IF_BUSY or (reason and max(meters) < thresholds.gpu):
        return Value.UNKNOWN, reason
    if max(meters) >= thresholds.gpu:
        return Value.BUSY, Reason.GPU_ACTIVE
    return Value.IDLE, Reason.GPU_QUIET


_EVEN_IF_BUSY: Final = frozenset({Reason.NOT_ATTRIBUTED, Reason.NO_GPU_READINGS, Reason.METERS_DISAGREE})
"""Doubts that outweigh a reading that shows work; the others only forbid to take a zero for idleness."""


def _doubt(reading: GpuReading, meters: list[float], thresholds: Thresholds) -> Reason | None:
    if reading.unmapped:
        return Reason.NOT_ATTRIBUTED
    if not meters:
        return Reason.NO_GPU_READINGS
    if min(meters) < thresholds.gpu and max(meters) > CONTRADICTION:
        return Reason.METERS_DISAGREE
    if reading.age_seconds is None or abs(reading.age_seconds) > thresholds.stale_after.total_seconds():
        return Reason.GPU_STALE
    if reading.coverage is None or reading.coverage < thresholds.coverage:
        return Reason.GPU_GAPS
    return None
