"""The judgement: facts about one server, what is remembered of it, its limits → what to do, and why.

    wait → warn (each stage once) → save → stop

The idle clock waits at each warning until that was given, so a stop never comes sooner than its warnings
promise. Only the longest session stops what works. The result carries a new `Track`; nothing is done here.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hub_ext.protocol import Limit
from hub_ext.protocol import State as Told

from .closing import save_then_stop
from .combine import combine
from .facts import Facts
from .limits import Limits
from .policy import Thresholds
from .reasons import Reason
from .signal import Value
from .signals import read_signals
from .track import Track, advance, set_right, unsay, wait_for_warning, warn
from .verdict import Action, Pace, Scene, Verdict

Judged = tuple[Verdict, Track]


def judge(
    facts: Facts, track: Track | None, limits: Limits, thresholds: Thresholds, *, pace: Pace, now: datetime
) -> Judged:
    """Judge one server.

    Parameters
    ----------
    track
        What was remembered; a track of another session of the same name is dropped.
    """
    if track is None or track.started != facts.hub.started:
        track = Track(user=facts.user, server=facts.server, started=facts.hub.started)
    track = set_right(track, now)
    if track.pretended and pace.acts:
        track = replace(
            track,
            pretended=False,
            idle_warned=0,
            idle_promise=None,
            session_warned=(),
            session_promise=None,
            saving=None,
        )
    signals = read_signals(facts, limits, thresholds)
    capped = limits.agent_cap is not None and track.disputed_seconds >= limits.agent_cap
    state = combine(signals, limits, capped=capped)
    track = advance(track, state, now, longest_gap=pace.longest_gap, cap=limits.agent_cap)
    scene = Scene(facts=facts, limits=limits, pace=pace, state=state, signals=signals, now=now)
    if not facts.hub.ready or facts.hub.pending:
        told = Told.STOPPING if facts.hub.pending == "stop" else Told.UNKNOWN
        return scene.say(told, Reason.NOT_READY), track
    if track.stop_by:
        return _asked(scene, track)
    return _by_limits(scene, track)


def _by_limits(scene: Scene, track: Track) -> Judged:
    """Follow the limit whose end comes first; the session's is shown where no other is in sight."""
    session = _session_left(scene, track)
    idle, track = _idle_left(scene, track)
    if idle is not None and (session is None or idle < session):
        return _follow(scene, track, Limit.IDLE, idle)
    if session is not None:
        return _follow(scene, track, Limit.SESSION, session)
    return scene.say(_told(scene, track), scene.state.reason), track


def _session_left(scene: Scene, track: Track) -> float | None:
    """Give the seconds until the session's end: never less than its last warning has promised."""
    limit, started = scene.limits.session, scene.facts.hub.started
    if limit is None or started is None:
        return None
    left = limit + track.extra_seconds - (scene.now - started).total_seconds()
    return max(left, track.session_promise.left(scene.now)) if track.session_promise else left


def _idle_left(scene: Scene, track: Track) -> tuple[float | None, Track]:
    """Give the seconds until the idle stop, and the track with its clock held at a warning that is due."""
    limit = scene.limits.idle
    if limit is None or scene.state.value is not Value.IDLE:
        return None, track
    warnings = scene.limits.warnings(limit)
    if track.idle_warned < len(warnings):
        track = wait_for_warning(track, limit=limit, left=warnings[track.idle_warned])
    kept = (track.keep_until - scene.now).total_seconds() if track.keep_until else 0.0
    promised = track.idle_promise.left(scene.now) if track.idle_promise else 0.0
    return max(limit - track.idle_seconds, kept, promised), track


def _follow(scene: Scene, track: Track, limit: Limit, left: float) -> Judged:
    span = scene.limits.idle if limit is Limit.IDLE else scene.limits.session
    warnings = scene.limits.warnings(span or 0.0)
    due = sum(left <= lead for lead in warnings)
    track = unsay(track, limit, due=due)
    given = track.idle_warned if limit is Limit.IDLE else len(track.session_warned)
    action = Action.KEEP
    if due > given and scene.pace.announces:
        # What is overdue is warned of one stage at a time, each with the time that it promises.
        left, given, action = max(left, warnings[given]), given + 1, Action.WARN
        track = replace(track, pretended=track.pretended or not scene.pace.acts)
        track = warn(track, limit, scene.now, left=left)
        verdict = _on_the_way(scene, track, limit, stage=given, action=action)
    elif left <= 0 and given >= len(warnings):
        reason = Reason.SESSION_END if limit is Limit.SESSION else scene.state.reason
        verdict, track = save_then_stop(scene, track, reason, patient=limit is Limit.IDLE)
    else:
        verdict = _on_the_way(scene, track, limit, stage=given, action=action)
    return replace(
        verdict,
        limit=limit,
        deadline=scene.now + timedelta(seconds=max(0.0, left)),
        seconds_left=max(0.0, left),
        stage=given,
    ), track


def _on_the_way(scene: Scene, track: Track, limit: Limit, *, stage: int, action: Action) -> Verdict:
    """Say that the deadline is not here yet."""
    if stage and scene.pace.acts:
        reason = Reason.SESSION_END if limit is Limit.SESSION else scene.state.reason
        return scene.say(Told.WARNED, reason, action=action)
    told = _told(scene, track)
    return scene.say(told, Reason.KEPT if told is Told.KEPT else scene.state.reason, action=action)


def _asked(scene: Scene, track: Track) -> Judged:
    reason = Reason.ADMIN_ASKED if track.stop_by == "admin" else Reason.USER_ASKED
    if not track.stop_save:
        return scene.say(Told.STOPPING, reason, action=Action.STOP), track
    return save_then_stop(scene, track, reason, patient=True)


def _told(scene: Scene, track: Track) -> Told:
    """Say what users are told while no deadline is near."""
    if scene.limits.known and scene.limits.idle is None and scene.limits.session is None:
        return Told.UNLIMITED
    if track.keep_until is not None and scene.now < track.keep_until:
        return Told.KEPT
    return {Value.BUSY: Told.IN_USE, Value.IDLE: Told.IDLE, Value.UNKNOWN: Told.UNKNOWN}[scene.state.value]
