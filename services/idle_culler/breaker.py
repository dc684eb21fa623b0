"""The circuit breaker: when so much would be stopped, or so little is known, an admin has to look first.

Stops that a user asked for, and those at the end of a session, are not its business: no signal leads to them.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hub_ext.protocol import Limit
from hub_ext.protocol import State as Told

from .policy import Breaker
from .reasons import Reason
from .signal import Value
from .verdict import Action, Verdict

WINDOW: Final = timedelta(minutes=10)
"""Stops of late that count together with those that are due now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """One pass in numbers."""

    servers: int
    idle_stops: int
    unknown: int

    @classmethod
    def of(cls, verdicts: Collection[Verdict]) -> Pulse:
        """Count verdicts."""
        return cls(
            servers=len(verdicts),
            idle_stops=sum(is_idle_stop(one) for one in verdicts),
            unknown=sum(one.value is Value.UNKNOWN for one in verdicts),
        )


def is_idle_stop(verdict: Verdict) -> bool:
    """Say whether signals lead to this stop, or to the save before it."""
    return verdict.action in {Action.SAVE, Action.STOP} and verdict.limit is Limit.IDLE


def hold(verdict: Verdict, reason: Reason) -> Verdict:
    """Take the stop out of a verdict: it is due and does not happen, for `reason`."""
    told = Told.IDLE if reason is Reason.OBSERVE_ONLY else Told.WARNED
    return replace(verdict, action=Action.KEEP, told=told, held=reason)


def check(pulse: Pulse, rules: Breaker, *, stopped: Iterable[datetime], now: datetime) -> Reason | None:
    """Say why no idle server is stopped in this pass; None if they may be.

    Parameters
    ----------
    stopped
        When idle servers were stopped of late.
    """
    of_late = sum(now - WINDOW < moment <= now for moment in stopped)
    servers = pulse.servers + of_late
    if not pulse.idle_stops:
        return None
    if pulse.idle_stops + of_late > max(rules.at_least, rules.share * servers):
        return Reason.TOO_MANY
    if pulse.unknown > max(rules.at_least, rules.unknown * pulse.servers):
        return Reason.TOO_LITTLE_KNOWN
    return None
