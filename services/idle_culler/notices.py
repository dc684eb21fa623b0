"""What is sent to people who have no page open.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hub_ext.protocol import Limit
from hub_ext.units import format_duration

from .answers import LOST, text_of
from .verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message. Plain text; what came from users is in it as it is."""

    title: str
    body: str
    user: str = ""
    """Whom it is for; empty for admins only."""


def warning(user: str, server: str, verdict: Verdict, *, page: str) -> Notice:
    """Warn a user of a stop.

    Parameters
    ----------
    page
        Address of the page where it can be kept.
    """
    left = format_duration(timedelta(seconds=60 * round((verdict.seconds_left or 0) / 60) or 60))
    what = _named(server)
    saved = "" if verdict.limit is Limit.IDLE else " Whatever runs in it ends then."
    body = "\n".join(
        [
            f"{text_of(verdict)} {what} is stopped in {left}.{saved}",
            *LOST,
            "Your files stay.",
            *([f"Keep it, or see why: {page}"] if page else []),
        ]
    )
    return Notice(title=f"{what} stops in {left}", body=body, user=user)


def receipt(user: str, server: str, verdict: Verdict, *, page: str) -> Notice:
    """Tell a user of a stop that has happened."""
    body = [f"{text_of(verdict)}", "Your files are kept; start it again at any time."]
    return Notice(
        title=f"{_named(server)} was stopped", body="\n".join([*body, *([page] if page else [])]), user=user
    )


def alert(title: str, body: str) -> Notice:
    """Tell admins of something that needs a look."""
    return Notice(title=title, body=body)


def _named(server: str) -> str:
    return f"Your workspace {server}" if server else "Your workspace"
