"""From the signals of a server to one value: does it work, is it idle, or is that not known?

Any busy signal keeps. Idle needs two sources that do not depend on one another: for a server with GPUs the
metrics of every GPU, and the workspace itself (or its processors and the hub, where it does not report).

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from .limits import Limits
from .reasons import Reason
from .signal import USERS_WORD, Signal, Source, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What all signals come to."""

    value: Value
    reason: Reason
    subject: str = ""
    since: datetime | None = None
    """Since when all that is needed vouches for idleness."""
    disputed: bool = False
    """Only what the user can make say anything speaks for work; all else says idle."""


def combine(signals: Sequence[Signal], limits: Limits, *, capped: bool = False) -> State:
    """Combine the signals of one server.

    Parameters
    ----------
    capped
        The user's word has held the server for as long as it may: it no longer counts as work.
    """
    by_source = {one.source: one for one in signals}
    counted = [one for one in signals if not _is_waived(one, by_source, limits)]
    busy = [one for one in counted if one.value is Value.BUSY]
    disputed = bool(busy) and _is_disputed(busy, by_source)
    if busy and not (disputed and capped):
        first = busy[0]
        return State(value=Value.BUSY, reason=first.reason, subject=first.subject, disputed=disputed)
    needed = _needed(by_source, limits)
    for one in needed:
        if one.value is Value.UNKNOWN:
            return State(value=Value.UNKNOWN, reason=one.reason, subject=one.subject)
    reason = _idle_reason(by_source, capped=disputed and capped)
    return State(value=Value.IDLE, reason=reason, since=_since(needed), disputed=disputed)


def _is_waived(signal: Signal, signals: Mapping[Source, Signal], limits: Limits) -> bool:
    """Say whether a signal is no evidence: the hub's, where the workspace tells pages from people."""
    known = signals[Source.PRESENCE].value is not Value.UNKNOWN
    return signal.source is Source.HUB and limits.ignore_open_tabs and known


def _is_disputed(busy: Sequence[Signal], signals: Mapping[Source, Signal]) -> bool:
    if any(one.source not in USERS_WORD for one in busy):
        return False
    independent = [signals[source] for source in (Source.CPU, Source.GPU) if source in signals]
    return all(one.value is Value.IDLE for one in independent)


def _needed(signals: Mapping[Source, Signal], limits: Limits) -> list[Signal]:
    """Give the signals that all have to be idle; one that is unknown leaves the whole unknown."""
    needed = [signals[Source.GPU]] if Source.GPU in signals else []
    agent = signals[Source.AGENT]
    if agent.value is not Value.UNKNOWN:
        needed += [agent, signals[Source.PRESENCE]]
        return needed if limits.ignore_open_tabs else [*needed, signals[Source.HUB]]
    if limits.hub_stands_in and agent.reason is Reason.NO_AGENT:
        return [*needed, signals[Source.HUB]]
    if limits.metrics_stand_in:
        cpu = signals[Source.CPU]
        # Where the processors are not measured either, the workspace is what an admin can mend.
        missing = agent if cpu.value is Value.UNKNOWN else cpu
        return [*needed, missing, signals[Source.HUB]]
    return [*needed, agent]


def _idle_reason(signals: Mapping[Source, Signal], *, capped: bool) -> Reason:
    if capped:
        return Reason.WORD_CAPPED
    if signals[Source.AGENT].reason is Reason.KERNEL_WAITS:
        return Reason.KERNEL_WAITS
    return Reason.GPU_IDLE if Source.GPU in signals else Reason.IDLE


def _since(needed: Sequence[Signal]) -> datetime | None:
    moments = [one.since for one in needed]
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None
