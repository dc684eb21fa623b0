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


def is_end(verdict: Verdict) -> bool:
    """Say whether a limit leads to a stop now, or to the save before it."""
    return verdict.limit is not None and verdict.action in {Action.SAVE, Action.STOP}


def is_idle_stop(verdict: Verdict) -> bool:
    """Say whether signals lead to it."""
    return verdict.limit is Limit.IDLE and is_end(verdict)


def hold(verdict: Verdict, reason: Reason) -> Verdict:
    """Take the stop out of a verdict: it is due and does not happen, for `reason`."""
    told = Told.IDLE if reason is Reason.OBSERVE_ONLY else Told.WARNED
    return replace(verdict, action=Action.KEEP, told=told, held=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """How many idle servers may be stopped in this pass."""

    reason: Reason | None = None
    """Why none is."""
    allowance: int | None = None
    """At most so many, the rest waits; None for all."""
    since: datetime | None = None
    """Since when there have been too many at once."""


OPEN: Final = Gate()


def check(
    pulse: Pulse, rules: Breaker, *, stopped: Iterable[datetime], since: datetime | None, now: datetime
) -> Gate:
    """Judge a pass as a whole.

    Too many at once are held until an admin lets them through, or until `rules.hold` has passed in which an
    admin could have stepped in; then they go a few at a time. Without that, servers that everybody left at
    the end of a day would wait for ever.

    Parameters
    ----------
    stopped
        When idle servers were stopped of late.
    since
        `Gate.since` of the pass before.
    """
    if not pulse.idle_stops:
        return OPEN
    if pulse.unknown > max(rules.at_least, rules.unknown * pulse.servers):
        return Gate(reason=Reason.TOO_LITTLE_KNOWN, since=since)
    of_late = sum(now - WINDOW < moment <= now for moment in stopped)
    most = max(rules.at_least, int(rules.share * (pulse.servers + of_late)))
    if pulse.idle_stops + of_late <= most:
        return OPEN
    since = min(since, now) if since else now
    if isinstance(rules.hold, timedelta) and now - since >= rules.hold:
        return Gate(allowance=max(0, most - of_late), since=since)
    return Gate(reason=Reason.TOO_MANY, since=since)
