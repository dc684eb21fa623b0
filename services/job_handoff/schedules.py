"""When a schedule starts its next run, and how it stands.

Source: Kubernetes' CronJob controller (1.32 to 1.36). A time that came while nothing could be started (the
schedule was paused, the run before had not ended, the controller was away) is made up for as long as
`startingDeadlineSeconds` says.

Pure: no clock, no network; reads the data base of time zones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from hub_ext.cluster.texts import span
from hub_ext.cluster.times import read_time
from hub_ext.errors import BadValueError

from .cron import next_after, read_cron
from .reasons import RunReason
from .status import Phase, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """The next run of a schedule."""

    at: datetime
    """In UTC."""
    zone: str
    """Of the schedule."""
    due: bool = False
    """Its time has come, and it has not been started yet."""

    @property
    def text(self) -> str:
        """Say when it is on the clocks of the schedule."""
        return clock(self.at, self.zone)


@lru_cache(maxsize=256)
def zone_of(name: str) -> ZoneInfo:
    """Find a time zone.

    Raises
    ------
    BadValueError
        There is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise BadValueError(f"there is no time zone {name!r}") from error


def clock(moment: datetime, zone: str) -> str:
    """Write a moment as clocks in a zone show it; one that they show twice with its distance from UTC."""
    local = moment.astimezone(zone_of(zone))
    twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    which = f", UTC{local.isoformat()[-6:]}" if twice else ""
    return f"{local:%A, %Y-%m-%d} at {local:%H:%M} ({zone}{which})"


def next_start(cron: str, zone: str, now: datetime) -> Coming | None:
    """Give the next time of a cron line; None if it never comes.

    Raises
    ------
    BadValueError
        The line or the zone is none.
    """
    at = next_after(read_cron(cron), zone_of(zone), now)
    return None if at is None else Coming(at=at, zone=zone)


def coming(schedule: Mapping[str, Any], now: datetime) -> Coming | None:
    """Give the next run of a CronJob in API spelling; None if it is paused, or if nobody can say."""
    spec, status = schedule.get("spec") or {}, schedule.get("status") or {}
    if spec.get("suspend") is True:
        return None
    last = status.get("lastScheduleTime") or schedule["metadata"].get("creationTimestamp")
    since = read_time(last) or now
    if (made_up := _made_up(schedule)) is not None:
        since = max(since, now - made_up)
    try:
        found = next_start(str(spec.get("schedule")), str(spec.get("timeZone") or "Etc/UTC"), since)
    except BadValueError:
        return None
    return found and replace(found, due=found.at <= now)


def _made_up(schedule: Mapping[str, Any]) -> timedelta | None:
    """Say for how long a time that came is made up; None for always."""
    seconds = (schedule.get("spec") or {}).get("startingDeadlineSeconds")
    return None if seconds is None else timedelta(seconds=int(seconds))


def schedule_status(schedule: Mapping[str, Any], now: datetime) -> Status:
    """Say how a schedule stands: when it starts next, when it did last, and whether it rests."""
    last = read_time((schedule.get("status") or {}).get("lastScheduleTime"))
    rests = (schedule.get("spec") or {}).get("suspend") is True
    text = "Paused." if rests else _text(schedule, now)
    if last is not None:
        text += f" It started last on {last.astimezone(UTC):%Y-%m-%d at %H:%M} UTC."
    return Status(
        phase=Phase.QUEUED, reason=RunReason.HELD if rests else RunReason.QUEUED, text=text, since=last
    )


def _text(schedule: Mapping[str, Any], now: datetime) -> str:
    found = coming(schedule, now)
    if found is None:
        return "Starts by its schedule."
    if not found.due:
        return f"Starts next on {found.text}."
    if not (schedule.get("status") or {}).get("active"):
        return f"Due since {found.text}: it starts now."
    made_up = _made_up(schedule)
    within = f", if that is within {span(made_up)}" if made_up is not None else ""
    return f"Due since {found.text}: it starts when the run before it has ended{within}."
