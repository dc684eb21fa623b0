"""The last step before a stop: save what is open, and wait for it within bounds.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from hub_ext.protocol import State as Told

from .facts import Facts
from .reasons import Reason
from .signal import is_old
from .track import Saving, Track
from .verdict import Action, Scene, Verdict

PAGE: Final = timedelta(seconds=90)
"""A report of at most this age says whether a page is open; the agent itself knows which pages are gone."""
SAVED_SECONDS: Final = 300.0
"""How long a save holds good for a stop that was put off."""


def save_then_stop(scene: Scene, track: Track, reason: Reason, *, patient: bool) -> tuple[Verdict, Track]:
    """Ask for a save where a page is open that can do it, then stop.

    Parameters
    ----------
    patient
        A save that fails puts off the stop by `Limits.unsaved_delay`.
    """
    stop = scene.say(Told.STOPPING, reason, action=Action.STOP)
    acts = scene.pace.acts or bool(track.stop_by)
    track = _forget_old_save(scene, track)
    if track.saving is None:
        if not acts or not has_page(scene.facts, scene.now):
            return stop, track
        track = replace(
            track, saving=Saving(id=f"{track.keeps}-{int(scene.now.timestamp())}", asked=scene.now)
        )
        return scene.say(Told.SAVING, reason, action=Action.SAVE), track
    saving = track.saving
    bound = scene.limits.unsaved_delay if saving.failed and patient else scene.limits.save_within
    is_done = saving.done is not None and not saving.failed
    if is_done or (scene.now - saving.asked).total_seconds() >= bound:
        return stop, track
    wait = scene.say(Told.SAVING, reason, action=Action.SAVE)
    return (replace(wait, held=Reason.UNSAVED) if saving.failed else wait), track


def has_page(facts: Facts, now: datetime) -> bool:
    """Say whether a page is open that can save documents."""
    agent = facts.agent
    if agent is None or agent.unsaved is None:
        return False
    return not is_old(agent.at, now, PAGE)


def _forget_old_save(scene: Scene, track: Track) -> Track:
    saving = track.saving
    if saving is None or saving.done is None or saving.failed:
        return track
    is_old = (scene.now - saving.done).total_seconds() > SAVED_SECONDS
    return replace(track, saving=None) if is_old else track
