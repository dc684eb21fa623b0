"""When what a run has left behind goes.

Pure: `now` is an argument.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from .settings import Keeping


class Fate(StrEnum):
    """What becomes of a run's object."""

    KEEP = "keep"
    REMOVE = "remove"


def judge_object(ended: datetime | None, *, canceled: bool, keep: Keeping, now: datetime) -> Fate:
    """Judge the object of a run that has been filed.

    Parameters
    ----------
    ended
        None if nobody knows when it did.
    """
    if ended is None:
        return Fate.KEEP
    if canceled or now - ended >= keep.objects:
        return Fate.REMOVE
    return Fate.KEEP


def is_over(last_change: datetime | None, *, keep: Keeping, now: datetime) -> bool:
    """Say whether files of a run may go; what is not known stays."""
    return last_change is not None and now - last_change >= keep.files


def is_unused(uploaded: datetime, *, now: datetime) -> bool:
    """Say whether a source that no run names was not sent for one that is being submitted."""
    return now - uploaded >= timedelta(hours=6)


def is_orphan(created: datetime | None, *, now: datetime) -> bool:
    """Say whether what was made for a run that is not there belongs to nothing, not to one being created."""
    return created is not None and now - created >= timedelta(hours=1)
