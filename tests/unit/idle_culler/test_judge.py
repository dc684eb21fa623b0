"""Clocks, warnings, saving and stopping of one server."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hub_ext.protocol import Limit
from hub_ext.protocol import State as Told
from services.idle_culler.facts import KernelFacts, Work
from services.idle_culler.limits import Limits
from services.idle_culler.reasons import Reason
from services.idle_culler.signal import Value
from services.idle_culler.track import keep
from services.idle_culler.verdict import Action, Pace
from tests.fakes.culler import MINUTE, NOON, Watch, agent, cpu, hub, idle_facts, metrics, reading

BUSY = Work(origin="kernel", owner="k1", command="python", cpu=0.9)


def working(at: datetime):
    return idle_facts(at, agent=agent(at, work=(BUSY,)))


def blind(at: datetime):
    return idle_facts(at, gpu=None)


def test_an_idle_server_is_warned_in_stages_and_then_stopped() -> None:
    watch = Watch()
    verdict = watch.run(200)
    assert (verdict.action, verdict.reason, verdict.limit) == (Action.STOP, Reason.GPU_IDLE, Limit.IDLE)
    assert watch.now == NOON + timedelta(minutes=90)
    assert watch.warnings() == [1800.0, 600.0, 120.0]


def test_work_sets_the_clock_back_and_calls_warnings_off() -> None:
    watch = Watch()
    assert watch.run(70).told is Told.WARNED
    watch.now += MINUTE
    assert watch.run(0, working).told is Told.IN_USE
    assert watch.memory.idle_seconds == 0
    watch.now += MINUTE
    start = watch.now
    watch.run(200)
    assert watch.now == start + timedelta(minutes=90)


def test_the_clock_stands_still_while_a_signal_is_missing() -> None:
    watch = Watch()
    watch.run(40)
    assert watch.memory.idle_seconds == 2400
    watch.now += MINUTE
    verdict = watch.run(600, blind)
    assert (verdict.told, verdict.reason, verdict.seconds_left) == (Told.UNKNOWN, Reason.NO_METRICS, None)
    assert watch.memory.idle_seconds == 2400
    watch.now += MINUTE
    start = watch.now
    watch.run(200)
    assert watch.now - start == timedelta(minutes=50)


def test_time_in_which_nobody_looked_does_not_count() -> None:
    watch = Watch()
    watch.run(40)
    watch.now += timedelta(hours=5)
    verdict = watch.run(0)
    assert verdict.action is Action.KEEP
    # Only what the sources themselves vouch for was added, and the clock had more already.
    assert watch.memory.idle_seconds == 2400


def test_the_first_moment_after_work_is_not_yet_idle_time() -> None:
    watch = Watch()
    watch.run(0, working)
    watch.now += MINUTE
    watch.run(0)
    assert watch.memory.idle_seconds == 0


def test_another_session_of_the_same_name_begins_anew() -> None:
    watch = Watch()
    watch.run(80)
    watch.now += MINUTE
    watch.run(0, lambda at: idle_facts(at, hub=hub(at, started=watch.now - MINUTE)))
    assert watch.memory.idle_seconds <= 60
    assert watch.memory.idle_warned == 0


def test_a_stop_that_is_overdue_still_gives_every_warning_its_time() -> None:
    """A policy that becomes stricter, or a culler that comes to a hub, finds servers idle for days."""
    watch = Watch()
    long_idle = {"hub": hub(NOON, quiet=timedelta(days=3), started=NOON - timedelta(days=4)), "agent": None}

    def facts(at: datetime):
        parts = {"cpu": cpu(at, window=90000), "gpu": metrics(at, reading(), window=90000)}
        return idle_facts(at, **{**long_idle, **parts})

    verdict = watch.run(200, facts)
    assert verdict.action is Action.STOP
    assert watch.warnings() == [1800.0, 600.0, 120.0]
    assert watch.now == NOON + timedelta(minutes=30)


def test_warnings_longer_than_the_limit_are_left_out_but_never_all() -> None:
    assert Limits(idle=900.0).warnings(900.0) == (600.0, 120.0)
    assert Limits(warn_before=()).warnings(900.0) == (450.0,)
    watch = Watch(limits=Limits(idle=60.0, warn_before=(1800.0,)))
    assert watch.run(60).action is Action.STOP
    assert watch.warnings() == [30.0]


def test_without_a_limit_nothing_is_stopped() -> None:
    watch = Watch(limits=Limits())
    verdict = watch.run(600)
    assert (verdict.action, verdict.told) == (Action.KEEP, Told.UNLIMITED)


# --- keep


def test_keep_holds_the_server_and_warnings_begin_anew() -> None:
    watch = Watch()
    watch.run(70)
    watch.track = keep(watch.memory, watch.now, seconds=7200, extends_session=False)
    watch.now += MINUTE
    verdict = watch.run(0)
    assert (verdict.told, verdict.reason) == (Told.KEPT, Reason.KEPT)
    start = watch.now - MINUTE
    assert watch.run(400).action is Action.STOP
    assert watch.now - start == timedelta(minutes=120)
    assert watch.memory.keeps == 1


def test_a_short_keep_gives_no_less_than_the_idle_limit() -> None:
    watch = Watch()
    watch.run(89)
    watch.track = keep(watch.memory, watch.now, seconds=600, extends_session=False)
    start = watch.now
    watch.now += MINUTE
    watch.run(400)
    assert watch.now - start >= timedelta(minutes=90)


# --- the end of a session

SESSION = Limits(idle=5400.0, session=6 * 3600.0)


def test_the_session_ends_also_for_work_after_its_warnings() -> None:
    watch = Watch(limits=SESSION)  # it started four hours ago
    verdict = watch.run(300, working)
    assert (verdict.action, verdict.reason, verdict.limit) == (Action.STOP, Reason.SESSION_END, Limit.SESSION)
    assert watch.now == NOON + timedelta(hours=2)
    assert watch.warnings() == [1800.0, 600.0, 120.0]


def test_a_session_that_is_over_when_the_culler_comes_is_warned_in_full() -> None:
    watch = Watch(limits=replace(SESSION, session=3600.0))
    assert watch.run(300, working).action is Action.STOP
    assert watch.warnings() == [1800.0, 600.0, 120.0]
    assert watch.now == NOON + timedelta(minutes=30)


def test_missing_signals_do_not_put_off_the_end_of_a_session() -> None:
    watch = Watch(limits=SESSION)
    verdict = watch.run(300, blind)
    assert (verdict.action, verdict.value) == (Action.STOP, Value.UNKNOWN)


def test_keep_extends_a_session() -> None:
    watch = Watch(limits=SESSION)
    watch.run(100, working)
    watch.track = keep(watch.memory, watch.now, seconds=3600, extends_session=True)
    watch.now += MINUTE
    watch.run(300, working)
    assert watch.now == NOON + timedelta(hours=3)


def test_the_limit_that_ends_first_is_followed() -> None:
    watch = Watch(limits=replace(SESSION, session=4.5 * 3600))
    verdict = watch.run(200)
    assert verdict.limit is Limit.SESSION
    watch = Watch(limits=SESSION)
    assert watch.run(200).limit is Limit.IDLE


# --- saving


def with_page(at: datetime):
    return idle_facts(at, agent=agent(at, unsaved=1, input_seconds=9000.0))


def reach_the_save(watch: Watch) -> None:
    verdict = watch.run(90, with_page)
    assert (verdict.action, verdict.told) == (Action.SAVE, Told.SAVING)


def test_a_confirmed_save_is_followed_by_the_stop() -> None:
    watch = Watch()
    reach_the_save(watch)
    assert watch.memory.saving
    watch.change(saving=replace(watch.memory.saving, done=watch.now))
    watch.now += timedelta(seconds=10)
    assert watch.run(0, with_page).action is Action.STOP


def test_a_page_that_does_not_answer_is_waited_for_within_bounds() -> None:
    watch = Watch()
    reach_the_save(watch)
    watch.now += timedelta(seconds=30)
    assert watch.run(0, with_page).action is Action.SAVE
    watch.now += timedelta(seconds=31)
    assert watch.run(0, with_page).action is Action.STOP


def test_a_failed_save_puts_the_stop_off() -> None:
    watch = Watch()
    reach_the_save(watch)
    start = watch.now
    assert watch.memory.saving
    watch.change(saving=replace(watch.memory.saving, done=watch.now, failed=("a.ipynb",)))
    watch.now += MINUTE
    assert watch.run(0, with_page).held is Reason.UNSAVED
    watch.now += MINUTE
    watch.run(200, with_page)
    assert timedelta(minutes=60) <= watch.now - start <= timedelta(minutes=70)


def test_without_an_open_page_there_is_nothing_to_save() -> None:
    watch = Watch()
    watch.run(200)
    assert Action.SAVE not in {verdict.action for _, verdict in watch.verdicts}


def test_work_calls_a_save_off() -> None:
    watch = Watch()
    reach_the_save(watch)
    watch.now += MINUTE
    watch.run(0, working)
    assert watch.memory.saving is None


# --- wishes, and looking only


def test_a_user_may_stop_at_once_or_after_a_save() -> None:
    watch = Watch()
    watch.run(0, with_page)
    watch.change(stop_by="user")
    assert watch.run(0, with_page).reason is Reason.USER_ASKED
    watch.change(stop_save=True)
    watch.now += MINUTE
    assert watch.run(0, with_page).action is Action.SAVE


def test_what_was_only_tried_out_counts_for_nothing_when_it_becomes_real() -> None:
    watch = Watch(pace=Pace(acts=False))
    verdict = watch.run(400)
    assert verdict.action is Action.STOP
    assert Told.WARNED not in {v.told for _, v in watch.verdicts}
    watch.verdicts.clear()
    watch.pace = Pace()
    watch.now += MINUTE
    start = watch.now
    watch.run(200)
    assert watch.warnings() == [1800.0, 600.0, 120.0]
    assert watch.now - start == timedelta(minutes=30)


@pytest.mark.parametrize("pending", ["stop", "spawn"])
def test_a_server_on_the_move_is_left_alone(pending: str) -> None:
    watch = Watch(limits=replace(SESSION, session=1.0))
    facts = idle_facts(NOON, hub=replace(hub(NOON), pending=pending))
    assert watch.look(facts).reason is Reason.NOT_READY


# --- the user's word


def claims(at: datetime):
    """The workspace says that it works, and all else says that it does not."""
    return idle_facts(at, agent=agent(at, work=(BUSY,), input_seconds=0.0))


def test_the_users_word_delays_but_not_for_ever() -> None:
    watch = Watch(limits=Limits(idle=1800.0, agent_cap=4 * 3600.0))
    verdict = watch.run(8 * 60, claims)
    assert (verdict.action, verdict.reason) == (Action.STOP, Reason.WORD_CAPPED)
    assert timedelta(hours=4) < watch.now - NOON < timedelta(hours=5)


def test_the_word_is_believed_where_something_else_bears_it_out() -> None:
    watch = Watch(limits=Limits(idle=1800.0, agent_cap=3600.0))
    verdict = watch.run(8 * 60, lambda at: replace(claims(at), cpu=cpu(at, 0.9)))
    assert verdict.told is Told.IN_USE


def test_the_word_is_believed_where_nothing_else_is_measured() -> None:
    watch = Watch(limits=Limits(idle=1800.0, agent_cap=3600.0))
    assert watch.run(8 * 60, lambda at: replace(claims(at), cpu=None)).told is Told.IN_USE


def test_a_report_alone_never_stops_a_gpu_server() -> None:
    watch = Watch()
    assert watch.run(8 * 60, lambda at: idle_facts(at, gpu=None, cpu=None)).action is Action.KEEP


def test_a_kernel_that_waits_for_input_is_no_work() -> None:
    waits = KernelFacts(state="busy", state_seconds=10.0, waits_for_input=True)
    watch = Watch()
    verdict = watch.run(200, lambda at: idle_facts(at, agent=agent(at, kernels=(waits,))))
    assert (verdict.action, verdict.reason) == (Action.STOP, Reason.KERNEL_WAITS)
