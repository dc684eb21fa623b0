"""A signal: what one source says about a server, as busy, idle or unknown.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from .facts import Facts
from .reasons import Reason


class Value(StrEnum):
    """What a signal says."""

    BUSY = "busy"
    IDLE = "idle"
    UNKNOWN = "unknown"


class Source(StrEnum):
    """Where a signal is from."""

    HUB = "hub"
    AGENT = "agent"
    """Work, as the workspace reports it."""
    PRESENCE = "presence"
    """The user, as the workspace reports it."""
    CPU = "cpu"
    """Processors of the pod, from Prometheus."""
    GPU = "gpu"
    """GPUs of the pod, from Prometheus."""


USERS_WORD = frozenset({Source.AGENT, Source.PRESENCE, Source.HUB})
"""Sources that a user can make say anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """What one source says."""

    source: Source
    value: Value
    reason: Reason
    at: datetime | None = None
    """When it was observed; None where nothing was."""
    since: datetime | None = None
    """Since when the source itself vouches for this value."""
    subject: str = ""
    """What it is about: a command, a notebook, ``2 of 8``."""


def is_old(at: datetime, now: datetime, stale_after: timedelta) -> bool:
    """Say whether an observation says nothing about now; one from ahead is of a clock that was set back."""
    return abs(now - at) > stale_after


def is_due_again(last: datetime, now: datetime, every: timedelta) -> bool:
    """Say whether it is time to do what is done now and then; a clock that was set back puts off nothing."""
    return not timedelta(0) <= now - last < every


def window_start(facts: Facts, at: datetime, seconds: float) -> datetime:
    """Give the start of a window: pods of one name follow each other, and only the last one counts."""
    start = at - timedelta(seconds=seconds)
    return max(start, facts.hub.started) if facts.hub.started else start
