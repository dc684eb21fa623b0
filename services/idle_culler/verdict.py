"""What is judged, and what comes of it.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from hub_ext.protocol import Limit
from hub_ext.protocol import State as Told

from .combine import State
from .facts import Facts
from .limits import Limits
from .reasons import Reason
from .signal import Signal, Value


class Action(StrEnum):
    """What to do with a server now."""

    KEEP = "keep"
    WARN = "warn"
    SAVE = "save"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do with one server, why, and on what evidence."""

    action: Action
    told: Told
    """What users are told about it."""
    reason: Reason
    subject: str = ""
    """What the reason is about; it may come from the user."""
    value: Value
    """Whether it works, as far as is known."""
    signals: tuple[Signal, ...]
    limit: Limit | None = None
    """Which limit the deadline is of."""
    deadline: datetime | None = None
    seconds_left: float | None = None
    stage: int = 0
    """Warnings that are due, this one included."""
    held: Reason | None = None
    """Why a stop that is due does not happen."""

    @property
    def unattended(self) -> bool:
        """Whether it works while no page is open and nobody types, as far as the workspace tells."""
        nobody = any(one.reason is Reason.NOBODY_THERE for one in self.signals)
        return self.value is Value.BUSY and nobody


GAP: Final = 2.5
"""Intervals that may pass between two looks: one pass may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the culler looks."""

    every: timedelta = timedelta(minutes=1)
    """Between two looks."""
    acts: bool = True
    """False while nothing is stopped and nobody is warned."""
    announces: bool = True
    """Warnings may be given at this look."""

    @property
    def longest_gap(self) -> float:
        """Seconds between two looks over which clocks still advance."""
        return GAP * self.every.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that the judgement of one server looks at."""

    facts: Facts
    limits: Limits
    pace: Pace
    state: State
    signals: tuple[Signal, ...]
    now: datetime

    def say(self, told: Told, reason: Reason, *, action: Action = Action.KEEP) -> Verdict:
        """Make a verdict without a deadline."""
        return Verdict(
            action=action,
            told=told,
            reason=reason,
            subject=self.state.subject if reason is self.state.reason else "",
            value=self.state.value,
            signals=self.signals,
        )
