"""Limits that change while a server is warned: by the hour, by a rule, by a new catalog."""

from __future__ import annotations

from datetime import timedelta

from hub_ext.protocol import State as Told
from services.idle_culler.limits import Limits
from services.idle_culler.verdict import Action
from tests.fakes.culler import MINUTE, NOON, Watch, idle_facts, metrics, reading

HOUR = 3600.0


def change(watch: Watch, **limits: float | tuple[float, ...] | None) -> None:
    """Let other limits hold from the next look on."""
    watch.limits = Limits(**limits)  # type: ignore[arg-type]
    watch.now += MINUTE


def test_a_shorter_limit_does_not_take_back_what_a_warning_promised() -> None:
    watch = Watch()
    watch.run(60)
    assert watch.warnings() == [1800.0]
    change(watch, idle=1800.0)
    verdict = watch.run(200)
    assert (verdict.action, watch.now) == (Action.STOP, NOON + timedelta(minutes=90))
    assert watch.warnings() == [1800.0, 600.0, 120.0]


def test_a_longer_limit_is_warned_of_anew_before_its_end() -> None:
    watch = Watch(limits=Limits(idle=HOUR))
    watch.run(58.5)
    assert watch.warnings() == [1800.0, 600.0, 120.0]
    change(watch, idle=4 * HOUR)
    assert watch.run(0).told is Told.IDLE
    verdict = watch.run(600)
    assert verdict.action is Action.STOP
    assert watch.warnings() == [1800.0, 600.0, 120.0] * 2
    assert watch.now >= NOON + timedelta(hours=4)


def test_a_shorter_session_does_not_take_back_what_a_warning_promised() -> None:
    """It is up since four hours at noon."""
    watch = Watch(limits=Limits(session=6 * HOUR))
    watch.run(91)
    assert watch.warnings() == [1800.0]
    change(watch, session=HOUR, warn_before=(120.0,))
    verdict = watch.run(200)
    assert (verdict.action, watch.now) == (Action.STOP, NOON + timedelta(hours=2))


def test_a_longer_session_is_warned_of_anew_before_its_end() -> None:
    watch = Watch(limits=Limits(session=5 * HOUR))
    watch.run(59)
    assert len(watch.warnings()) == 3
    change(watch, session=9 * HOUR)
    assert watch.run(0).stage == 0
    assert watch.run(600).action is Action.STOP
    assert len(watch.warnings()) == 6


def test_a_promise_of_a_clock_that_was_ahead_lasts_no_longer_than_any() -> None:
    watch = Watch(now=NOON + timedelta(days=365), limits=Limits(idle=HOUR))
    watch.run(31)
    assert watch.memory.idle_promise is not None
    watch.now = NOON
    assert watch.run(120).action is Action.STOP
    assert watch.now <= NOON + timedelta(minutes=61)


def test_work_ends_a_promise_and_silence_does_not() -> None:
    watch = Watch(limits=Limits(idle=HOUR))
    watch.run(31)
    assert watch.memory.idle_promise is not None
    watch.now += MINUTE
    watch.run(0, lambda at: idle_facts(at, gpu=None))
    assert watch.memory.idle_promise is not None
    watch.now += MINUTE
    watch.run(0, lambda at: idle_facts(at, gpu=metrics(at, reading(0.9))))
    assert watch.memory.idle_promise is None
