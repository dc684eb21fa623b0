"""What is remembered about one session of a server, and the clocks that run in it.

A clock advances only between two moments that were both seen idle, one soon after the other. It stands still
while anything is unknown, and while nobody looked; work sets it back to zero.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from pydantic import ConfigDict, TypeAdapter

from hub_ext.protocol import Limit

from .combine import State
from .facts import CONFIG, Length, Moment
from .signal import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """A request to save the open documents."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    id: str
    asked: Moment
    done: Moment | None = None
    """When the page confirmed."""
    failed: tuple[str, ...] = ()
    """Documents that could not be saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a warning said: it does not end before then, whatever becomes of the limit."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    given: Moment
    seconds: Length

    def left(self, now: datetime) -> float:
        """Give the seconds that it still holds for."""
        return self.seconds - (now - self.given).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One session: the time from a start of a server to its stop."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    user: str
    server: str = ""
    started: Moment | None = None
    """Tells this session from the next one of the same name."""
    idle_seconds: Length = 0.0
    value: Value = Value.UNKNOWN
    """At the last look."""
    seen: Moment | None = None
    """When that was."""
    disputed_seconds: Length = 0.0
    """How long nothing but the user's word has spoken for work."""
    idle_warned: int = 0
    """Warnings of the idle limit that were given since it last worked."""
    idle_promise: Promise | None = None
    """By the last of them."""
    session_warned: tuple[Moment, ...] = ()
    """When each warning of the session's end was given."""
    session_promise: Promise | None = None
    """By the last of them."""
    pretended: bool = False
    """Warnings were only counted, not given: nothing was to be stopped."""
    kept: Moment | None = None
    """When Keep was pressed last."""
    keep_until: Moment | None = None
    keeps: int = 0
    """Times that Keep was pressed."""
    extra_seconds: Length = 0.0
    """That Keep has added to the longest session."""
    saving: Saving | None = None
    stop_by: str = ""
    """Who asked to stop it now: ``user``, ``admin`` or nobody."""
    stop_save: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.user, self.server


TRACK: Final = TypeAdapter(Track)
TRACKS: Final = TypeAdapter(tuple[Track, ...])


def set_right(track: Track, now: datetime) -> Track:
    """Take back what was noted while a clock was ahead: else a wait for it could last for years."""
    saving, kept, until = track.saving, track.kept, track.keep_until
    promises = [one.given for one in (track.idle_promise, track.session_promise) if one]
    others = [one for one in (saving and saving.asked, kept) if one]
    if all(one <= now for one in (*track.session_warned, *promises, *others)):
        return track
    return replace(
        track,
        session_warned=tuple(min(one, now) for one in track.session_warned),
        idle_promise=_not_after(track.idle_promise, now),
        session_promise=_not_after(track.session_promise, now),
        saving=replace(saving, asked=min(saving.asked, now)) if saving else None,
        kept=min(kept, now) if kept else None,
        keep_until=until - max(kept - now, timedelta(0)) if until and kept else until,
    )


def _not_after(promise: Promise | None, now: datetime) -> Promise | None:
    return replace(promise, given=min(promise.given, now)) if promise else None


def advance(track: Track, state: State, now: datetime, *, longest_gap: float, cap: float | None) -> Track:
    """Bring the clocks up to `now`.

    Parameters
    ----------
    longest_gap
        Seconds between two looks; over a longer gap nobody knows what happened, and no clock advances.
    cap
        Most seconds that the dispute clock needs to count; None for as many as come.
    """
    elapsed = (now - track.seen).total_seconds() if track.seen else 0.0
    passed = elapsed if 0 < elapsed <= longest_gap else 0.0
    looked = replace(track, value=state.value, seen=now, disputed_seconds=_dispute(track, state, passed, cap))
    if state.value is Value.UNKNOWN:
        return looked
    if state.value is Value.BUSY:
        return replace(
            looked, idle_seconds=0.0, idle_warned=0, idle_promise=None, saving=_unless_session(looked)
        )
    counted = track.idle_seconds + (passed if track.value is Value.IDLE else 0.0)
    return replace(looked, idle_seconds=max(counted, _vouched(track, state, now)))


def _vouched(track: Track, state: State, now: datetime) -> float:
    """Give how long the sources themselves say that it is idle; once warned, only what was seen counts."""
    return (now - state.since).total_seconds() if state.since and not track.idle_warned else 0.0


def _dispute(track: Track, state: State, passed: float, cap: float | None) -> float:
    if not state.disputed:
        return track.disputed_seconds if state.value is Value.UNKNOWN else 0.0
    counted = track.disputed_seconds + passed
    return counted if cap is None else min(counted, cap)


def _unless_session(track: Track) -> Saving | None:
    """Work calls off a save before an idle stop, but not one before the session's end or a wish to stop."""
    return track.saving if track.session_warned or track.stop_by else None


def wait_for_warning(track: Track, *, limit: float, left: float) -> Track:
    """Hold the idle clock so that `left` seconds remain until a warning of that lead was given."""
    return replace(track, idle_seconds=min(track.idle_seconds, limit - left))


def warn(track: Track, limit: Limit, now: datetime, *, left: float) -> Track:
    """Note a warning, and what it promises."""
    promise = Promise(given=now, seconds=left)
    if limit is Limit.IDLE:
        return replace(track, idle_warned=track.idle_warned + 1, idle_promise=promise)
    return replace(track, session_warned=(*track.session_warned, now), session_promise=promise)


def unsay(track: Track, limit: Limit, *, due: int) -> Track:
    """Forget warnings that are not due any more: the end was put off, and they are given anew before it."""
    if limit is Limit.IDLE:
        return replace(track, idle_warned=due) if track.idle_warned > due else track
    still = track.session_warned[:due]
    return replace(track, session_warned=still) if still != track.session_warned else track


def keep(track: Track, now: datetime, *, seconds: float, extends_session: bool) -> Track:
    """Note that the user keeps the server: warnings begin anew, and so does the idle clock."""
    return replace(
        track,
        kept=now,
        keep_until=now + timedelta(seconds=seconds),
        keeps=track.keeps + 1,
        extra_seconds=track.extra_seconds + (seconds if extends_session else 0.0),
        idle_seconds=0.0,
        idle_warned=0,
        idle_promise=None,
        session_warned=() if extends_session else track.session_warned,
        session_promise=None if extends_session else track.session_promise,
        saving=None,
        stop_by="",
        stop_save=False,
    )
