"""The policy: what an admin writes about stopping, and what it comes to for one server at one moment.

Each limit is taken from the first rule that matches and names it, else from the profile's `session`, else
from `defaults`.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from hub_ext.catalog.base import Duration, Flag, Model, Name
from hub_ext.catalog.model import Catalog
from hub_ext.catalog.policy import Session
from hub_ext.errors import BadValueError

from .facts import PodFacts
from .limits import GpuKind, Limits, gpu_kind

NEVER: Final = "never"
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Span = Duration | Literal["never"]


def _some(value: timedelta) -> timedelta:
    if not value:
        raise BadValueError("0s is no time at all", help="Write how long, such as 1m.")
    return value


Time = Annotated[Duration, AfterValidator(_some)]
"""A span that is not nothing."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Cores = Annotated[float, Field(gt=0, le=64, allow_inf_nan=False)]


class Mode(StrEnum):
    """Whether anything is stopped."""

    OBSERVE = "observe"
    """Say what would be stopped, stop nothing and warn nobody."""
    ACT = "act"
    """Warn, save and stop."""


class WithoutAgent(StrEnum):
    """What stands in where a workspace does not report about itself."""

    KEEP = "keep"
    """Nothing: it is not stopped for being idle."""
    METRICS = "metrics"
    """Its processors as Prometheus knows them, and the hub's last activity."""
    HUB = "hub"
    """The hub's last activity alone. Silent computing with the browser closed is not seen; servers with a GPU
    also need idle readings of it."""


_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


def _hours(value: object) -> object:
    match = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadValueError(f"{value!r} is not a time of day", help="Write 22:00-06:00.")
    first, second = time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
    if first == second:
        raise BadValueError(f"{value!r} is no time at all", help="Leave hours out for the whole day.")
    return first, second


Hours = Annotated[
    tuple[time, time],
    BeforeValidator(_hours),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}$"}),
]


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadValueError(
            f"{text!r} is not a time zone", help="Write a name such as Europe/Berlin."
        ) from error
    return text


class When(Model):
    """Which servers a rule is for; what is left out matches all."""

    gpu: tuple[GpuKind, ...] = ()
    """Kinds of GPU that the server holds."""
    teams: tuple[Name, ...] = ()
    """Teams that it is charged to."""
    profiles: tuple[Name, ...] = ()
    """Profiles that it was started from, of any version."""
    hours: Hours | None = None
    """Time of day, such as `22:00-06:00`; over midnight, it belongs to the day that it begins on."""
    days: tuple[Day, ...] = ()
    """Days of the week."""

    def matches(self, pod: PodFacts, local: datetime) -> bool:
        """Say whether a server is meant at a moment of the policy's time zone."""
        return (
            (not self.gpu or gpu_kind(pod) in self.gpu)
            and (not self.teams or pod.team in self.teams)
            and (not self.profiles or pod.profile in self.profiles)
            and self._is_time(local)
        )

    def _is_time(self, local: datetime) -> bool:
        day = local.weekday()
        if self.hours is not None:
            begin, end = self.hours
            clock = local.time().replace(tzinfo=None)
            late = begin > end and clock < end
            if not (late or (clock >= begin and (begin > end or clock < end))):
                return False
            day = (day - 1) % 7 if late else day
        return not self.days or DAYS[day] in self.days


class Settings(Model):
    """Limits, and how they are applied; what is left out is decided elsewhere."""

    idle_timeout: Time | Literal["never"] | None = None
    """Stopped after this long without work; `never` for not at all."""
    max_duration: Time | Literal["never"] | None = None
    """Stopped after this long in any case; `never` for not at all."""
    warn_before: tuple[Duration, ...] | None = None
    """When the user is warned before a stop, longest first."""
    keep_for: Time | None = None
    """How long one press of Keep keeps."""
    keeps: int | None = Field(default=None, ge=0, le=1000, strict=True)
    """How often it may be pressed in one session."""
    ignore_open_tabs: Flag | None = None
    """An open page without anything being typed or run is no activity."""
    without_agent: WithoutAgent | None = None
    """What stands in where a workspace does not report about itself."""
    agent_cap: Span | None = None
    """How long the workspace's own word may hold a server that is idle by all other signals."""
    stuck_after: Duration | None = None
    """How long a kernel may be busy, or a command stay in the foreground, without using anything."""
    save_within: Duration | None = None
    """How long a stop waits until open documents are saved."""
    unsaved_delay: Duration | None = None
    """How much later an idle server is stopped while a document cannot be saved."""


class Rule(Settings):
    """Limits for some servers at some times."""

    when: When = When()


class Defaults(Settings):
    """What holds where neither a rule nor the profile says anything."""

    warn_before: tuple[Duration, ...] = (timedelta(minutes=30), timedelta(minutes=10), timedelta(minutes=2))
    keep_for: Time = timedelta(hours=1)
    keeps: int = Field(default=4, ge=0, le=1000, strict=True)
    ignore_open_tabs: Flag = True
    without_agent: WithoutAgent = WithoutAgent.METRICS
    agent_cap: Span = timedelta(hours=8)
    stuck_after: Duration = timedelta(hours=2)
    save_within: Duration = timedelta(minutes=1)
    unsaved_delay: Duration = timedelta(hours=1)


class Thresholds(Model):
    """What counts as work, and what counts as measured."""

    gpu: Share = 0.02
    """Use of a GPU from which on it works."""
    process_cpu: Cores = 0.05
    """Processors that a kernel, a terminal or a process uses when it works."""
    pod_cpu: Cores = 0.15
    """Processors that a whole pod uses when it works; an open page alone takes some hundredths."""
    io_bytes: int = Field(default=64 * 1024, gt=0, strict=True)
    """Bytes per second that a process reads and writes when it works."""
    coverage: Share = 0.9
    """Part of the samples that a window must hold to say that nothing happened in it."""
    stale_after: Time = timedelta(minutes=2)
    """Age from which on an observation says nothing."""
    active_within: Duration = timedelta(minutes=10)
    """How old a hub's activity may be and still count: it is brought up to date every five minutes."""


class Breaker(Model):
    """When so much seems idle, or so little is known, that something is wrong with the signals."""

    share: Share = 0.3
    """Part of all servers that may be stopped for being idle within ten minutes."""
    at_least: int = Field(default=5, ge=0, strict=True)
    """Stops that are always allowed: a part of few servers is less than one."""
    unknown: Share = 0.5
    """Part of all servers of which it may be unknown whether they work."""
    hold: Span = timedelta(hours=1)
    """How long too many at once are held, for an admin to look; then they are stopped a few at a time.
    `never` for not before an admin says so."""


class Policy(Model):
    """Everything about stopping."""

    mode: Mode = Mode.OBSERVE
    """Nothing is stopped until an admin says `act`."""
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """Time zone of `hours` and `days`."""
    rules: tuple[Rule, ...] = ()
    """The first rule that matches and names a limit decides it."""
    defaults: Defaults = Defaults()
    thresholds: Thresholds = Thresholds()
    breaker: Breaker = Breaker()
    grace: Duration = timedelta(minutes=10)
    """After a start of the culler, or of the hub, nothing is stopped for being idle for this long."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for settings in (self.defaults, *self.rules):
            before = settings.warn_before or ()
            if list(before) != sorted(set(before), reverse=True):
                raise BadValueError("warnBefore is not in order", help="Write the longest first.")
            if timedelta(0) in before:
                raise BadValueError("a warning at the moment of the stop is none", help="Write 1m or more.")
        return self

    def limits(self, pod: PodFacts | None, catalog: Catalog | None, now: datetime) -> Limits:
        """Give what holds for one server at `now`; of one whose pod is not seen, nobody knows what holds.

        Parameters
        ----------
        catalog
            Where the profiles are that servers were started from; None where there is none.
        """
        if pod is None:
            return Limits(known=False)
        profile = catalog.by_key.get((pod.profile, pod.version or 0)) if catalog else None
        session = profile.session if profile else None
        local = now.astimezone(ZoneInfo(self.timezone))
        layers = [rule for rule in self.rules if rule.when.matches(pod, local)]
        sources: list[Any] = [*layers, *((session,) if session else ()), self.defaults]
        found = {name: _first(sources, name) for name in Settings.model_fields}
        return Limits(
            idle=_span(found.pop("idle_timeout")),
            session=_span(found.pop("max_duration")),
            warn_before=_leads(found.pop("warn_before")),
            agent_cap=_span(found.pop("agent_cap")),
            keeps=found.pop("keeps"),
            ignore_open_tabs=found.pop("ignore_open_tabs"),
            metrics_stand_in=found["without_agent"] is not WithoutAgent.KEEP,
            hub_stands_in=found.pop("without_agent") is WithoutAgent.HUB,
            **{name: span.total_seconds() for name, span in found.items()},
        )


def _first(sources: Iterable[Any], name: str) -> Any:
    return next(_stated(sources, name), None)


def _stated(sources: Iterable[Any], name: str) -> Iterator[Any]:
    """Give what the sources say in turn; a profile without warnings leaves them to the policy."""
    for source in sources:
        value = getattr(source, name, None)
        if value is not None and not (isinstance(source, Session) and value == ()):
            yield value


def _leads(spans: Iterable[timedelta]) -> tuple[float, ...]:
    """Give warnings longest first, whichever order a profile has them in."""
    return tuple(sorted({one.total_seconds() for one in spans if one}, reverse=True))


def _span(value: timedelta | str | None) -> float | None:
    return value.total_seconds() if isinstance(value, timedelta) else None
