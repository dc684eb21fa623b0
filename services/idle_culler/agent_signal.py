"""What the workspace says about itself: its work, and its user.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from hub_ext.protocol import Attribution

from .facts import AgentFacts, Facts, KernelFacts, Work
from .limits import Limits
from .policy import Thresholds
from .reasons import Reason
from .signal import Signal, Source, Value, is_old


def agent_signals(facts: Facts, limits: Limits, thresholds: Thresholds) -> tuple[Signal, Signal]:
    """Judge what the workspace says about its work and about its user."""
    agent = facts.agent
    if agent is None or is_old(agent.at, facts.at, thresholds.stale_after):
        reason = Reason.NO_AGENT if agent is None else Reason.AGENT_SILENT
        at = agent.at if agent else None
        return (
            Signal(source=Source.AGENT, value=Value.UNKNOWN, reason=reason, at=at),
            Signal(source=Source.PRESENCE, value=Value.UNKNOWN, reason=reason, at=at),
        )
    return _work_signal(agent, limits, thresholds), _presence_signal(agent, thresholds)


def _work_signal(agent: AgentFacts, limits: Limits, thresholds: Thresholds) -> Signal:
    def say(value: Value, reason: Reason, subject: str = "", since: datetime | None = None) -> Signal:
        return Signal(
            source=Source.AGENT, value=value, reason=reason, at=agent.at, subject=subject, since=since
        )

    for reason, subject in _at_work(agent, limits, thresholds):
        return say(Value.BUSY, reason, subject)
    if not agent.complete or agent.window_seconds <= 0:
        return say(Value.UNKNOWN, Reason.AGENT_INCOMPLETE)
    waiting = [one for one in agent.kernels if one.state != "idle"]
    if waiting:
        return say(Value.IDLE, Reason.KERNEL_WAITS, waiting[0].name)
    since = agent.at - timedelta(seconds=agent.window_seconds)
    holding = max(agent.work, key=lambda one: one.gpu_memory or 0, default=None)
    if holding is not None and holding.gpu_memory:
        return say(Value.IDLE, Reason.MEMORY_HELD, _name(holding, agent), since)
    return say(Value.IDLE, Reason.NOTHING_RUNS, since=since)


def _at_work(agent: AgentFacts, limits: Limits, thresholds: Thresholds) -> Iterator[tuple[Reason, str]]:
    """Give what works in the workspace, with what it is known by."""
    if agent.attribution is Attribution.TRUSTED and any(
        use is not None and use >= thresholds.gpu for use in agent.gpu_use.values()
    ):
        user = max(agent.work, key=lambda one: one.gpu or 0, default=None)
        yield Reason.GPU_ACTIVE, _name(user, agent) if user and user.gpu else ""
    for one in agent.work:
        if (one.cpu or 0) >= thresholds.process_cpu or (one.io_rate or 0) >= thresholds.io_bytes:
            reason = Reason.BACKGROUND_RUNS if one.background else _BY_ORIGIN.get(one.origin)
            yield reason or Reason.PROCESS_RUNS, _name(one, agent)
    for kernel in agent.kernels:
        if _runs(kernel, agent.window_seconds, limits.stuck_after):
            yield Reason.KERNEL_RUNS, kernel.name
    for terminal in agent.terminals:
        bound = limits.stuck_after if terminal.foreground else agent.window_seconds
        if terminal.quiet_seconds is not None and terminal.quiet_seconds < bound:
            yield Reason.TERMINAL_RUNS, terminal.foreground or terminal.name


def _name(work: Work, agent: AgentFacts) -> str:
    """Say what users know some processes by: their notebook, or else the busiest command."""
    names = (one.name for one in agent.kernels if one.id == work.owner)
    return next(names, "") or work.command


def _runs(kernel: KernelFacts, window_seconds: float, stuck_after: float) -> bool:
    """Say whether a kernel's state speaks for work; processor time is looked at elsewhere.

    `busy` is no proof: it may wait for input for ever. One that ran to its end between two reports worked.
    """
    seconds = kernel.state_seconds
    if kernel.state == "idle":
        return seconds is not None and seconds < window_seconds
    if kernel.waits_for_input is True or kernel.state in _DEAD:
        return False
    return seconds is None or seconds < stuck_after


_BY_ORIGIN = {"kernel": Reason.KERNEL_RUNS, "terminal": Reason.TERMINAL_RUNS}
_DEAD = frozenset({"dead", "terminating", "unknown"})


def _presence_signal(agent: AgentFacts, thresholds: Thresholds) -> Signal:
    quiet = agent.input_seconds
    present = quiet is not None and quiet < thresholds.active_within.total_seconds()
    if present:
        reason = Reason.USER_ACTIVE
    elif agent.unsaved is None and not any(one.connections for one in agent.kernels):
        reason = Reason.NOBODY_THERE
    else:
        reason = Reason.OPEN_TAB
    return Signal(
        source=Source.PRESENCE,
        value=Value.BUSY if present else Value.IDLE,
        reason=reason,
        at=agent.at,
        since=None if quiet is None else agent.at - timedelta(seconds=quiet),
    )
