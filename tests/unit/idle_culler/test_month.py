"""A month of sessions with faults in every signal: nobody's work is killed, and what is idle comes back."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from hub_ext.protocol import Limit
from services.idle_culler.judge import judge
from services.idle_culler.verdict import Pace
from tests.fakes.culler_month import (
    LIMITS,
    THRESHOLDS,
    Fault,
    Kind,
    Result,
    build_month,
    facts_of,
    live,
    measure,
)


@pytest.fixture(scope="module")
def month() -> Result:
    return live(*build_month(seed=7), step=900.0)


def test_no_session_at_work_is_stopped_for_being_idle(month: Result) -> None:
    assert month.sessions == 500
    assert month.killed == []


def test_what_is_idle_comes_back(month: Result) -> None:
    assert month.stopped > 450
    assert month.share_returned >= 0.95, month.by_fault


def test_every_fault_took_part(month: Result) -> None:
    assert set(month.by_fault) == set(Fault)
    sessions, outages = build_month(seed=7)
    assert set(Kind) == {phase.kind for one in sessions for phase in one.phases}
    assert all(Counter(one.fault for one in sessions)[fault] >= 3 for fault in Fault)
    assert outages.prometheus
    assert outages.hub
    assert outages.culler


def test_a_stop_in_the_middle_of_work_would_be_seen() -> None:
    """The truth is not what the culler thinks: a culler that stops too soon is found out."""
    (session, *_), outages = build_month(seed=7, sessions=3)
    phase = session.phases[0]
    middle = (phase.start + phase.end) / 2
    facts = facts_of(session, middle, outages)
    verdict, _ = judge(facts, None, LIMITS, THRESHOLDS, pace=Pace(), now=facts.at)
    session.stopped, session.stop = middle, verdict
    session.stop = type(verdict)(
        action=verdict.action,
        told=verdict.told,
        reason=verdict.reason,
        value=verdict.value,
        signals=verdict.signals,
        limit=Limit.IDLE,
        deadline=facts.at + timedelta(0),
    )
    assert [kind for _, kind, _ in measure([session], 0).killed] == [phase.kind]
