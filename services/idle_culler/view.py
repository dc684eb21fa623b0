"""What the pages show: one card per server for users, one row per server for admins.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hub_ext.protocol import Answer, Evidence, Limit, State
from hub_ext.units import format_duration

TITLES: Final = {
    State.IN_USE: "In use",
    State.IDLE: "Idle",
    State.UNKNOWN: "Not known",
    State.KEPT: "Kept by you",
    State.WARNED: "Will be stopped",
    State.SAVING: "Saving your work",
    State.STOPPING: "Stopping",
    State.UNLIMITED: "No limit",
}
TONES: Final = {
    State.IN_USE: "good",
    State.KEPT: "good",
    State.UNLIMITED: "good",
    State.IDLE: "soft",
    State.UNKNOWN: "soft",
    State.WARNED: "warn",
    State.SAVING: "warn",
    State.STOPPING: "bad",
}
WORDS: Final = {"hub": "hub", "agent": "workspace", "pod": "processors", "dcgm": "GPU"}
SOURCES: Final = {
    "hub": "Hub: when it was last used",
    "agent": "Workspace: what runs in it",
    "pod": "Cluster: processors",
    "dcgm": "Cluster: GPUs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One piece of evidence."""

    value: str
    word: str
    """The source in one word, for tables."""
    source: str
    text: str
    age: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One server, ready to be shown."""

    user: str
    server: str
    name: str
    profile: str
    title: str
    tone: str
    text: str
    ends: str
    """What happens when, as a sentence; empty where nothing does."""
    seconds_left: float | None
    left: str
    """The same for people; empty for None."""
    part_left: float | None
    """Of the whole limit, 0 to 1, for the bar."""
    signs: tuple[Sign, ...]
    lost: tuple[str, ...]
    unsaved: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A server and what is told about it."""

    user: str
    server: str
    profile: str
    gpus: str
    """What it holds, in words; empty for none."""
    answer: Answer
    whole_seconds: float | None
    """Of the limit that the deadline is of."""
    unsaved: tuple[str, ...] = ()


def build_card(shown: Shown) -> Card:
    """Build the card of a server."""
    answer = shown.answer
    left, whole = answer.seconds_left, shown.whole_seconds
    return Card(
        user=shown.user,
        server=shown.server,
        name=shown.server or "Default workspace",
        profile=" · ".join(part for part in (shown.profile, shown.gpus) if part),
        title=TITLES[answer.state],
        tone=TONES[answer.state],
        text=answer.text,
        ends=_ends(answer),
        seconds_left=left,
        left="" if left is None else about(left),
        part_left=min(1.0, left / whole) if left is not None and whole else None,
        signs=tuple(_sign(one) for one in answer.evidence),
        lost=answer.lost,
        unsaved=shown.unsaved,
        answer=answer,
    )


def _ends(answer: Answer) -> str:
    if answer.observe_only or answer.seconds_left is None or answer.state is State.STOPPING:
        return ""
    if answer.limit is Limit.SESSION:
        return f"It may run for {about(answer.seconds_left)} more, whatever runs in it."
    return f"It is stopped in {about(answer.seconds_left)} if nothing changes."


def _sign(one: Evidence) -> Sign:
    age = "" if one.age_seconds is None else f"{about(one.age_seconds)} ago"
    return Sign(
        value=one.value,
        word=WORDS[one.source],
        source=SOURCES[one.source],
        text=one.text,
        age="just now" if one.age_seconds is not None and one.age_seconds < 60 else age,
    )


def about(seconds: float) -> str:
    """Write a span for people: to the minute, and below that to the second."""
    rounded = round(seconds) if seconds < 60 else 60 * round(seconds / 60)
    return format_duration(timedelta(seconds=rounded))
