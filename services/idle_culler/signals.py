"""From facts to signals: what each source says by itself.

Zero is never enough alone, and silence is not zero: what is missing, stale, has gaps or contradicts itself is
unknown.

Pure: no clock, no network.
"""

from __future__ import annotations

from .agent_signal import agent_signals
from .facts import Facts
from .gpu_signal import gpu_signal
from .limits import Limits
from .policy import Thresholds
from .reasons import Reason
from .signal import Signal, Source, Value, is_old, window_start


def read_signals(facts: Facts, limits: Limits, thresholds: Thresholds) -> tuple[Signal, ...]:
    """Give the signals of all sources, those that are missing too."""
    found = [hub_signal(facts, thresholds), *agent_signals(facts, limits, thresholds)]
    found.append(cpu_signal(facts, thresholds))
    if facts.pod is None or facts.pod.devices or (facts.gpu and facts.gpu.gpus):
        found.append(gpu_signal(facts, thresholds))
    return tuple(found)


def hub_signal(facts: Facts, thresholds: Thresholds) -> Signal:
    """Judge the hub's last activity: it bounds idleness from above, and pages that are open move it."""
    last = facts.hub.last_activity
    if last is None:
        return Signal(source=Source.HUB, value=Value.UNKNOWN, reason=Reason.NO_ACTIVITY_KNOWN)
    ahead = last > facts.at + thresholds.stale_after
    last = min(last, facts.at)
    busy = facts.at - last < thresholds.active_within
    reason = Reason.CLOCK_AHEAD if ahead else Reason.HUB_ACTIVE if busy else Reason.HUB_QUIET
    value = Value.BUSY if busy else Value.IDLE
    return Signal(source=Source.HUB, value=value, reason=reason, at=facts.at, since=last)


def cpu_signal(facts: Facts, thresholds: Thresholds) -> Signal:
    """Judge the processors of the pod. Busy ones keep a server; idle ones say nothing about its GPU."""
    cpu = facts.cpu
    if cpu is None or cpu.cores is None or is_old(cpu.at, facts.at, thresholds.stale_after):
        return Signal(source=Source.CPU, value=Value.UNKNOWN, reason=Reason.NO_CPU_READINGS)
    if cpu.cores >= thresholds.pod_cpu:
        return Signal(source=Source.CPU, value=Value.BUSY, reason=Reason.CPU_ACTIVE, at=cpu.at)
    if cpu.coverage is None or cpu.coverage < thresholds.coverage:
        return Signal(source=Source.CPU, value=Value.UNKNOWN, reason=Reason.CPU_GAPS, at=cpu.at)
    since = window_start(facts, cpu.at, cpu.window_seconds)
    return Signal(source=Source.CPU, value=Value.IDLE, reason=Reason.CPU_QUIET, at=cpu.at, since=since)
