"""Clocks that are wrong and are set right: what was noted ahead of now holds nobody for years."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from services.idle_culler.breaker import Gate, Pulse, check
from services.idle_culler.closing import has_page
from services.idle_culler.limits import Limits
from services.idle_culler.policy import Breaker, Thresholds
from services.idle_culler.reasons import Reason
from services.idle_culler.record import Recorder, recordings
from services.idle_culler.settings import Record
from services.idle_culler.signal import Value
from services.idle_culler.signals import read_signals
from services.idle_culler.track import Saving, Track, keep, set_right
from services.idle_culler.verdict import Action
from tests.fakes.culled_hub import CulledHub
from tests.fakes.culler import NOON, Watch, agent, cpu, hub, idle_facts, metrics, reading

YEAR = timedelta(days=365)
HOUR = 3600.0


def test_a_session_ends_also_if_its_warnings_were_given_by_a_clock_that_was_ahead() -> None:
    watch = Watch(limits=Limits(session=5 * HOUR))
    watch.run(31)
    assert watch.memory.session_warned
    watch.change(session_warned=tuple(one + YEAR for one in watch.memory.session_warned))
    last = watch.run(120, lambda at: idle_facts(at, hub=hub(at), gpu=metrics(at, reading(0.9))))
    assert (last.action, last.reason) == (Action.STOP, Reason.SESSION_END)


def test_a_keep_of_a_clock_that_was_ahead_lasts_no_longer_than_any() -> None:
    watch = Watch()
    watch.run(1)
    watch.track = keep(watch.memory, watch.now + YEAR, seconds=2 * HOUR, extends_session=False)
    start = watch.now
    watch.run(90)
    assert watch.memory.keep_until == start + timedelta(hours=2)
    assert watch.run(300).action is Action.STOP
    assert watch.now == start + timedelta(hours=2)


def test_a_save_that_was_asked_for_in_the_future_is_not_waited_for_till_then() -> None:
    watch = Watch()
    watch.run(89, lambda at: idle_facts(at, agent=agent(at, unsaved=1)))
    watch.change(saving=Saving(id="1", asked=watch.now + YEAR))
    assert watch.run(5, lambda at: idle_facts(at, agent=agent(at, unsaved=1))).action is Action.STOP


def test_what_lies_in_the_past_is_left_as_it_is() -> None:
    track = Track(user="a", session_warned=(NOON,), saving=Saving(id="1", asked=NOON))
    track = replace(track, kept=NOON, keep_until=NOON + YEAR)
    assert set_right(track, NOON) is track
    assert set_right(replace(track, kept=None), NOON).keep_until == NOON + YEAR, "of an earlier version"


def test_no_clock_advances_while_time_goes_backwards() -> None:
    watch = Watch()
    watch.run(30)
    before = watch.memory.idle_seconds
    watch.now -= timedelta(days=1)
    watch.look(idle_facts(watch.now))
    assert watch.memory.idle_seconds == before


def test_a_clock_that_leaps_ahead_stops_nobody_without_the_warnings() -> None:
    watch = Watch(limits=Limits(idle=5400.0, session=12 * HOUR))
    watch.run(2)
    watch.now += YEAR
    watch.run(200, lambda at: idle_facts(at, hub=hub(at)))
    leads = watch.warnings()
    assert leads == sorted(leads, reverse=True)
    assert leads[0] >= 1800


@pytest.mark.parametrize("shift", [timedelta(days=1), timedelta(minutes=3)])
def test_observations_from_ahead_say_nothing(shift: timedelta) -> None:
    at = NOON + shift
    ahead = idle_facts(NOON, agent=agent(at), cpu=cpu(at), gpu=metrics(at, reading()))
    signals = read_signals(ahead, Limits(), Thresholds())
    assert {one.value for one in signals if one.source != "hub"} == {Value.UNKNOWN}
    assert not has_page(idle_facts(NOON, agent=agent(at, unsaved=1)), NOON)


def test_too_many_that_are_held_since_the_future_are_held_no_longer_than_any() -> None:
    pulse, rules = Pulse(servers=20, idle_stops=20, unknown=0), Breaker()
    gate = check(pulse, rules, stopped=[], since=NOON + YEAR, now=NOON)
    assert gate == Gate(reason=Reason.TOO_MANY, since=NOON)
    later = check(pulse, rules, stopped=[], since=gate.since, now=NOON + timedelta(hours=1))
    assert later.allowance


async def test_the_hub_is_listed_again_though_the_clock_was_set_back() -> None:
    world = CulledHub({})
    world.add("ada")
    await world.passes(1)
    world.add("bob")
    world.now -= timedelta(days=1)
    await world.passes(1)
    assert ("bob", "") in world.culler.book.judged


async def test_the_recording_goes_on_though_the_clock_was_set_back(tmp_path: Path) -> None:
    recorder = Recorder(Record(folder=tmp_path))
    await recorder.note([], NOON)
    await recorder.note([], NOON - timedelta(days=1))
    assert len(recordings(tmp_path)) == 2
