"""Records of starts, and what many of them say together.

A start that failed or ran out of time took at least as long as it took: it counts as longer than all that
succeeded, not as if it had not been. A percentile that falls among the failed ones has no value.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import Any, Final, Self

from ..errors import BadValueError
from .phases import Phase, Split
from .waits import Usual

FORMAT: Final = 1
LEAST_FOR_USUAL: Final = 3
"""Starts that must have been seen before anything is called usual."""


class Outcome(StrEnum):
    """How a start ended."""

    STARTED = "started"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    CANCELLED = "cancelled"
    """By the user: says nothing about how long it would have taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecord:
    """One start, without the name of the user."""

    at: datetime
    """When it was requested."""
    profile: str
    version: int
    pool: str
    outcome: Outcome
    reason: str = ""
    """Of a failed one, in the words of `WaitReason` or `quota.verdicts.Reason`."""
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds by phase, to the second at best; they add up to `seconds`."""
    warm: bool | None = None
    image: str = ""
    pull_bytes: int | None = None
    pull_wait_seconds: float | None = None
    skewed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Give the record as one line of the log has it."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {"format": FORMAT, **values, "at": self.at.isoformat(), "outcome": self.outcome.value}

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> Self:
        """Read one line of the log.

        Raises
        ------
        BadValueError
            Not such a line, or one of another format.
        """
        if line.get("format") != FORMAT:
            raise BadValueError(f"not a record of a start in format {FORMAT}", code="bad-record")
        values = {name: value for name, value in line.items() if name in cls.__slots__}
        try:
            values |= {"at": datetime.fromisoformat(line["at"]), "outcome": Outcome(line["outcome"])}
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise BadValueError(f"a record of a start lacks something: {error}", code="bad-record") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was started."""

    profile: str
    version: int
    pool: str
    """Empty where the hub's own placement applied."""
    image: str = ""


def record(made: Split, subject: Subject, *, at: datetime, outcome: Outcome, reason: str = "") -> StartRecord:
    """Make the record of a start that was taken apart."""
    sizes = [one.size_bytes for one in made.pulls if one.size_bytes is not None]
    waits = [one.waited.total_seconds() for one in made.pulls if one.waited is not None]
    return StartRecord(
        at=at,
        profile=subject.profile,
        version=subject.version,
        pool=subject.pool,
        image=subject.image,
        outcome=outcome,
        reason=reason,
        seconds=round(made.total.total_seconds(), 3),
        phases={phase.value: round(part.total_seconds(), 3) for phase, part in made.parts.items()},
        warm=made.warm,
        pull_bytes=sum(sizes) if sizes else None,
        pull_wait_seconds=round(sum(waits), 3) if waits else None,
        skewed=made.skewed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Many starts of one kind."""

    profile: str
    pool: str
    number: int
    """Started, failed and timed out; cancelled ones are left out."""
    failed: int
    p50: float | None
    """Seconds; None if fewer than half of them ever started."""
    p95: float | None
    phases: Mapping[str, tuple[float, float]]
    """P50 and P95 in seconds of each phase among those that started."""
    warm: int
    """How many found their image on the node."""
    reasons: Mapping[str, int]
    """Why the others failed."""

    @property
    def longest(self) -> str:
        """The phase where most of the time goes, by its P50; empty if none started."""
        return max(self.phases, key=lambda name: self.phases[name][0], default="")

    def as_dict(self) -> dict[str, Any]:
        """Give the summary as JSON."""
        values = {name: getattr(self, name) for name in self.__slots__}
        phases = {name: {"p50": low, "p95": high} for name, (low, high) in self.phases.items()}
        return {**values, "phases": phases, "longest": self.longest}


def summarize(records: Iterable[StartRecord]) -> tuple[Summary, ...]:
    """Sum up by profile and pool, in the order of their names."""
    groups: dict[tuple[str, str], list[StartRecord]] = {}
    for one in records:
        if one.outcome is not Outcome.CANCELLED:
            groups.setdefault((one.profile, one.pool), []).append(one)
    return tuple(_summary(*key, groups[key]) for key in sorted(groups))


def _summary(profile: str, pool: str, records: Sequence[StartRecord]) -> Summary:
    started = [one for one in records if one.outcome is Outcome.STARTED]
    failed = [one for one in records if one.outcome is not Outcome.STARTED]
    times = sorted(one.seconds for one in started)
    names = [phase.value for phase in Phase if any(phase.value in one.phases for one in started)]
    reasons: dict[str, int] = {}
    for one in failed:
        word = one.reason or one.outcome.value
        reasons[word] = reasons.get(word, 0) + 1
    return Summary(
        profile=profile,
        pool=pool,
        number=len(records),
        failed=len(failed),
        p50=percentile(times, 0.50, of=len(records)),
        p95=percentile(times, 0.95, of=len(records)),
        phases={name: _spread([one.phases.get(name, 0.0) for one in started]) for name in names},
        warm=sum(1 for one in started if one.warm),
        reasons=dict(sorted(reasons.items())),
    )


def percentile(ordered: Sequence[float], share: float, *, of: int) -> float | None:
    """Give the nearest-rank percentile of `of` values, of which the largest are not known.

    `ordered` are those that are known, ascending; None if the rank falls among the others.
    """
    rank = max(1, ceil(share * of))
    return ordered[rank - 1] if rank <= len(ordered) else None


def _spread(values: Iterable[float]) -> tuple[float, float]:
    ordered = sorted(values)
    number = len(ordered)
    return percentile(ordered, 0.5, of=number) or 0.0, percentile(ordered, 0.95, of=number) or 0.0


def usual(records: Iterable[StartRecord], *, profile: str, pool: str, image: str = "") -> Usual:
    """Say what is usual for a kind of start; nothing is while fewer than three were seen.

    What is fetched differs from image to image: one that is named counts alone.
    """
    started = [
        one
        for one in records
        if one.outcome is Outcome.STARTED and (one.profile, one.pool) == (profile, pool)
    ]

    def typical(
        belongs: Callable[[StartRecord], bool], seconds: Callable[[StartRecord], float]
    ) -> timedelta | None:
        times = sorted(seconds(one) for one in started if belongs(one))
        if len(times) < LEAST_FOR_USUAL:
            return None
        return timedelta(seconds=percentile(times, 0.5, of=len(times)) or 0.0)

    def was_fetched(one: StartRecord) -> bool:
        return one.warm is False and image in {"", one.image}

    sizes = [one.pull_bytes for one in started if image and was_fetched(one) and one.pull_bytes]
    return Usual(
        pull=typical(was_fetched, lambda one: one.phases.get(Phase.PULL.value, 0.0)),
        size=sizes[-1] if sizes else None,
        scale_up=typical(
            lambda one: Phase.SCALE_UP.value in one.phases, lambda one: one.phases[Phase.SCALE_UP.value]
        ),
        warm=typical(lambda one: one.warm is True, _without_waiting),
        cold=typical(lambda one: one.warm is False, _without_waiting),
    )


def _without_waiting(one: StartRecord) -> float:
    """Give the seconds that a start takes by itself: no turn and no new node had to be waited for."""
    return one.seconds - sum(one.phases.get(phase.value, 0.0) for phase in (Phase.QUEUE, Phase.SCALE_UP))
