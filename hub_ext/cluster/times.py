"""Timestamps of the Kubernetes API.

Pure: no clock, no network.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=16384)
def read_time(text: str | None) -> datetime | None:
    """Read an RFC 3339 time as aware UTC, of one-second or of microsecond precision; None stays None."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def in_utc(moment: datetime) -> datetime:
    """Give a time as aware UTC; one without zone is UTC, as the hub's are."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
