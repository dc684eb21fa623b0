"""What it is worth to have an image on the nodes of a pool, in starts that would find it there.

Pure: no clock, no network; `now` is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from hub_ext.cluster.starts import StartRecord

from .settings import WEEKDAYS, Seats, Settings
from .wants import Use

RECENT: Final = timedelta(days=14)
"""Starts that are older say little about the next ones."""
LINGER: Final = timedelta(hours=1)
"""How long after its time a class still brings starts."""

Starts = Mapping[tuple[str, str, str], int]
"""Recent starts by profile, pool and key of the image."""


def count_starts(records: Iterable[StartRecord], now: datetime) -> Starts:
    """Count recent starts, however they ended: each wanted its image."""
    recent = (one for one in records if timedelta(0) <= now - one.at <= RECENT)
    return Counter((one.profile, one.pool, one.image) for one in recent)


def benefit(use: Use, starts: Starts, settings: Settings, now: datetime) -> int:
    """Say how many starts a use stands for: recent ones, seats of a class that is near, being preselected."""
    name = use.profile.partition("@")[0]
    seats = sum(one.seats for one in settings.schedule if one.profile == name and is_near(one, now))
    bonus = settings.default_bonus if use.preselected else 0
    return starts.get((name, use.pool, use.image_key), 0) + seats + bonus


def is_near(seats: Seats, now: datetime) -> bool:
    """Say whether a class begins within its lead, or began less than an hour ago."""
    local = now.astimezone(ZoneInfo(seats.zone))
    for days in (-1, 0, 1):
        day = (local + timedelta(days=days)).date()
        if seats.weekdays and WEEKDAYS[day.weekday()] not in seats.weekdays:
            continue
        # A lead may reach back into the day before, and the hour after into the day after.
        begin = datetime.combine(day, seats.at, tzinfo=local.tzinfo)
        if begin - seats.lead <= local < begin + LINGER:
            return True
    return False
