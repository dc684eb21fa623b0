"""What users are told: the answer to a workspace, the cards of the page, notices."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hub_ext.protocol import Act, Answer, Limit
from hub_ext.protocol import State as Told
from services.idle_culler.answers import Outlook, build_answer, unseen
from services.idle_culler.limits import Limits
from services.idle_culler.notices import receipt, warning
from services.idle_culler.track import Saving
from services.idle_culler.verdict import Pace
from services.idle_culler.view import TITLES, TONES, Shown, build_card
from tests.fakes.culler import Watch, agent, hub, idle_facts, metrics, reading


def outlook(watch: Watch, **fields: Any) -> Outlook:
    verdict = watch.verdicts[-1][1]
    rest = {"verdict": verdict, "track": watch.memory, "limits": watch.limits, "acts": True}
    return Outlook(**{**rest, **fields})


def warned(**fields: Any) -> Answer:
    watch = Watch()
    watch.run(85)
    return build_answer(outlook(watch, **fields), watch.now)


def test_a_warning_says_when_why_what_is_lost_and_what_can_be_done() -> None:
    answer = warned()
    assert (answer.state, answer.reason, answer.limit) == (Told.WARNED, "gpu-idle", Limit.IDLE)
    assert (answer.stage, answer.seconds_left) == (2, 300)
    assert len(answer.lost) == 2
    assert [button.act for button in answer.buttons] == [Act.KEEP, Act.STOP]
    assert {one.source: one.value for one in answer.evidence}["dcgm"] == "idle"


def test_buttons_follow_what_is_possible() -> None:
    acts = [button.act for button in warned(has_page=True, handoff_url="/services/job-handoff/").buttons]
    assert acts == [Act.KEEP, Act.SAVE_STOP, Act.STOP, Act.HANDOFF]
    watch = Watch()
    watch.run(1)
    watch.change(keeps=4)
    keep = build_answer(outlook(watch), watch.now).buttons[0]
    assert not keep.enabled
    assert "as often as you may" in keep.text
    watch = Watch(limits=Limits())
    watch.run(1)
    assert [button.act for button in build_answer(outlook(watch), watch.now).buttons] == [Act.STOP]


def test_reports_come_more_often_when_it_matters() -> None:
    watch = Watch()
    watch.run(10)
    assert build_answer(outlook(watch), watch.now).next_report_seconds == 30
    watch.run(78)
    assert build_answer(outlook(watch), watch.now).next_report_seconds == 10


def test_a_save_is_asked_for_until_it_is_confirmed() -> None:
    def page(at: Any) -> Any:
        return idle_facts(at, agent=agent(at, unsaved=1, input_seconds=9000.0))

    watch = Watch()
    watch.run(90, page)
    asked = build_answer(outlook(watch), watch.now)
    assert asked.save
    assert (asked.state, asked.save.seconds, asked.next_report_seconds) == (Told.SAVING, 60, 5)
    done = Saving(id=asked.save.id, asked=watch.now, done=watch.now)
    assert build_answer(outlook(watch, track=replace(watch.memory, saving=done)), watch.now).save is None


def test_while_rules_are_tried_out_nothing_is_promised() -> None:
    watch = Watch(pace=Pace(acts=False))
    watch.run(85)
    answer = build_answer(outlook(watch, acts=False), watch.now)
    assert (answer.observe_only, answer.state, answer.stage, answer.lost) == (True, Told.IDLE, 0, ())
    assert unseen(acts=False).observe_only
    shown = Shown(user="ada", server="", profile="", gpus="", answer=answer, whole_seconds=5400.0)
    assert build_card(shown).ends == ""


def test_a_clock_that_stands_still_has_no_time_left() -> None:
    watch = Watch()
    watch.run(20)
    watch.look(idle_facts(watch.now, gpu=None))
    answer = build_answer(outlook(watch), watch.now)
    assert (answer.state, answer.seconds_left) == (Told.UNKNOWN, None)


def test_the_age_of_evidence_grows_after_the_look() -> None:
    watch = Watch()
    watch.run(1)
    later = build_answer(outlook(watch), watch.now + timedelta(seconds=42))
    assert {one.age_seconds for one in later.evidence} == {42}


@pytest.mark.parametrize("state", Told)
def test_every_state_has_a_title_and_a_tone(state: Told) -> None:
    assert TITLES[state]
    assert TONES[state] in {"good", "warn", "bad", "soft"}


def test_the_card_of_a_server() -> None:
    shown = Shown(
        user="ada", server="", profile="full", gpus="one GPU", answer=warned(), whole_seconds=5400.0
    )
    card = build_card(shown)
    assert (card.name, card.profile) == ("Default workspace", "full · one GPU")
    assert card.ends == "It is stopped in 5m if nothing changes."
    assert card.part_left == pytest.approx(300 / 5400)
    assert {sign.age for sign in card.signs} == {"just now"}


def test_what_works_while_nobody_has_it_open_is_said_to() -> None:
    watch = Watch()
    watch.run(1, lambda at: idle_facts(at, gpu=metrics(at, reading(0.9))))
    assert build_answer(outlook(watch), watch.now).text.startswith("The GPU is in use. Nobody has it open")
    watch.run(1, lambda at: idle_facts(at, agent=agent(at, unsaved=0), gpu=metrics(at, reading(0.9))))
    assert build_answer(outlook(watch), watch.now).text == "The GPU is in use."


def test_the_end_of_a_session_is_told_as_such() -> None:
    limits = Limits(session=6 * 3600.0)
    watch = Watch(limits=limits)
    watch.run(1, lambda at: idle_facts(at, hub=hub(at)))
    answer = build_answer(outlook(watch), watch.now)
    card = build_card(
        Shown(user="a", server="x", profile="", gpus="", answer=answer, whole_seconds=6 * 3600.0)
    )
    assert card.name == "x"
    assert card.ends == "It may run for 1h59m more, whatever runs in it."


# --- notices


def test_notices_say_the_same_as_the_page() -> None:
    watch = Watch()
    watch.run(60)
    notice = warning("ada", "", watch.verdicts[-1][1], page="https://hub.example/services/idle-culler/")
    assert notice.title == "Your workspace stops in 30m"
    assert "The GPU has not been used for a while" in notice.body
    assert notice.body.endswith("https://hub.example/services/idle-culler/")
    watch.run(31)
    assert receipt("ada", "x", watch.verdicts[-1][1], page="").title == "Your workspace x was stopped"
