"""Cron lines as Kubernetes' CronJob controller reads them, and when one comes next.

The libraries for Python keep the rules of other programs, and would tell a time at which nothing happens:
with them ``*/2`` as day of the month narrows the weekday, 7 is a Sunday, and a time that the clocks skip is
made up for. Here, as there:

- of day and weekday either is enough, unless one of them has ``*`` or ``?`` (``*/2`` is neither);
- a time that the clocks skip is left out, one that they show twice comes twice;
- what does not come within five years never comes.

Source: robfig/cron v3.0.1, `ParseStandard` and `SpecSchedule.Next`, which Kubernetes 1.32 to 1.36 build in.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from hub_ext.errors import BadValueError

NAMED: Final[Mapping[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_YEARS: Final = 5
_STEPS: Final = 20_000
"""More than five years take: where a zone leaves a whole day out, the controller's way never ends."""
_ANY: Final = frozenset({"*", "?"})
_STEP: Final = re.compile(r"0*[1-9][0-9]{0,8}")
_PART: Final = re.compile(r"(?P<any>[*?])|(?P<low>\w+)(?:-(?P<high>\w+))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """One of the five."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """The first stands for `low`."""


_FIELDS: Final = (
    _Field(name="minute", low=0, high=59),
    _Field(name="hour", low=0, high=23),
    _Field(name="day of the month", low=1, high=31),
    _Field(
        name="month",
        low=1,
        high=12,
        names=("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    ),
    _Field(name="weekday", low=0, high=6, names=("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A line that was read."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either: bool
    """Whether a day is taken that fits one of `days` and `weekdays`, not only one that fits both."""

    def takes_day(self, moment: datetime) -> bool:
        """Say whether it comes on a day."""
        day, weekday = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return day or weekday if self.either else day and weekday


def read_cron(text: str) -> Cron:
    """Read a line.

    Raises
    ------
    BadValueError
        The controller would not take it; the text says what is wrong.
    """
    if "TZ=" in text:
        raise BadValueError("the time zone has its own field and cannot stand before the times")
    if text.startswith("@") and text not in NAMED:
        raise BadValueError(f"{text[:40]} is not known: there are {', '.join(NAMED)}")
    parts = NAMED.get(text, text).split()
    if len(parts) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        raise BadValueError(f"it has {len(parts)} fields, and there must be {len(_FIELDS)}: {names}")
    minutes, hours, days, months, weekdays = (
        _read_field(field, part) for field, part in zip(_FIELDS, parts, strict=True)
    )
    return Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either=not (_is_any(parts[2]) or _is_any(parts[4])),
    )


def _read_field(field: _Field, text: str) -> frozenset[int]:
    found = frozenset(value for part in text.split(",") if part for value in _read_part(field, part))
    if not found:
        raise BadValueError(f"the {field.name} {text[:40]!r} names nothing, so it would never come")
    return found


def _read_part(field: _Field, text: str) -> Iterable[int]:
    """Read ``*``, ``5``, ``mon-fri``, each with ``/step``; ``5/10`` goes on to the end."""
    span, slash, step = text.partition("/")
    match = _PART.fullmatch(span)
    if match is None or (slash and not _STEP.fullmatch(step)):
        raise BadValueError(f"the {field.name} {text[:40]!r} cannot be read")
    low = field.low if match["any"] else _number(field, match["low"])
    if match["any"] or (slash and match["high"] is None):
        high = field.high
    else:
        high = _number(field, match["high"]) if match["high"] is not None else low
    if low > high:
        raise BadValueError(f"the {field.name} {text[:40]!r} ends before it begins")
    return range(low, high + 1, int(step) if slash else 1)


def _number(field: _Field, text: str) -> int:
    if text.lower() in field.names:
        return field.low + field.names.index(text.lower())
    if text.isdigit() and len(text) <= 4 and field.low <= int(text) <= field.high:
        return int(text)
    raise BadValueError(f"the {field.name} {text[:40]!r} is not between {field.low} and {field.high}")


def _is_any(text: str) -> bool:
    """Say whether all values are meant by a star: ``*/1`` too, and not ``*/2``."""
    spans = (part.partition("/") for part in text.split(","))
    return any(span in _ANY and (not slash or int(step) == 1) for span, slash, step in spans)


def next_after(cron: Cron, zone: tzinfo, moment: datetime) -> datetime | None:
    """Give the first time after a moment, in UTC; None if it never comes."""
    walk = _Walk(cron, zone, moment)
    last = walk.at.year + _YEARS
    while walk.at.year <= last and not walk.is_lost:
        if walk.settle():
            return walk.at.astimezone(UTC)
    return None


class _Walk:
    """Goes from one unit of the calendar to the next until all fit.

    It takes the steps that the controller takes, because at changes of the clocks another way leads to
    another time: hours and minutes pass as they do on a stopwatch, days and months by the calendar.
    """

    def __init__(self, cron: Cron, zone: tzinfo, moment: datetime) -> None:
        self._zone = zone
        self._round = False
        """Whether smaller units are at their beginning."""
        self._steps = 0
        self.at = (moment.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)).astimezone(zone)
        self._units: tuple[tuple[Callable[[], bool], Callable[[], None], Callable[[], bool]], ...] = (
            (lambda: self.at.month in cron.months, self._month, lambda: self.at.month == 1),
            (lambda: cron.takes_day(self.at), self._day, lambda: self.at.day == 1),
            (lambda: self.at.hour in cron.hours, self._hour, lambda: self.at.hour == 0),
            (lambda: self.at.minute in cron.minutes, self._minute, lambda: self.at.minute == 0),
            (lambda: self.at.second == 0, self._minute, lambda: True),
        )

    def settle(self) -> bool:
        """Go on; False where a larger unit has begun, so that all must be looked at again."""
        for fits, step, begins in self._units:
            while not fits():
                step()
                self._round, self._steps = True, self._steps + 1
                if begins() or self.is_lost:
                    return False
        return True

    @property
    def is_lost(self) -> bool:
        return self._steps > _STEPS

    def _month(self) -> None:
        wall = self._wall(month=True)
        self._set((wall.replace(day=1) + timedelta(days=32)).replace(day=wall.day))

    def _day(self) -> None:
        self._set(self._wall(day=True) + timedelta(days=1))
        if self.at.hour > 12:  # midnight was skipped, and this is the evening before
            self._pass(timedelta(hours=24 - self.at.hour))
        elif self.at.hour:
            self._pass(timedelta(hours=-self.at.hour))

    def _hour(self) -> None:
        if not self._round:
            self._set(self._wall())
        self._pass(timedelta(hours=1))

    def _minute(self) -> None:
        self._pass(timedelta(minutes=1, seconds=-self.at.second))

    def _wall(self, *, month: bool = False, day: bool = False) -> datetime:
        """Read the clock on the wall, at the beginning of its hour, day or month."""
        wall = self.at.replace(tzinfo=None, fold=0)
        if self._round:
            return wall
        begun = wall.replace(minute=0, second=0)
        return begun.replace(day=1, hour=0) if month else begun.replace(hour=0) if day else begun

    def _set(self, wall: datetime) -> None:
        """Take what the wall shows for a time; where it is shown twice or never, as Go's `time.Date` does."""
        guess = wall - self._offset(wall)
        self.at = (wall - self._offset(guess)).replace(tzinfo=UTC).astimezone(self._zone)

    def _offset(self, utc: datetime) -> timedelta:
        return utc.replace(tzinfo=UTC).astimezone(self._zone).utcoffset() or timedelta()

    def _pass(self, span: timedelta) -> None:
        self.at = (self.at.astimezone(UTC) + span).astimezone(self._zone)
