from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.devcluster.build.progress import Change, State, duration, line, live, plain, rows, shown, upcoming


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (41, "41 s"), (59.6, "1 min"), (200, "3 min 20 s"), (240, "4 min"), (1570, "26 min")],
)
def test_a_duration_is_said_as_people_say_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_comes_next_is_named_and_the_rest_counted() -> None:
    assert upcoming(()) == ""
    assert upcoming(("a", "b", "c")) == "a, b, c"
    assert upcoming(("a", "b", "c", "d", "e")) == "a, b, c and 2 more"


def state(change: Change, **fields: object) -> State:
    facts = {
        "change": change,
        "step": "kubelet",
        "seconds": 41.2,
        "done": 3,
        "total": 12,
        "running": (("kubelet", 12.0),),
        "waiting": ("kube-proxy", "kubectl"),
        "seconds_left": 372.0,
        **fields,
    }
    return State(**facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change.PLANNED, "[ 3/12] to build: kube-proxy, kubectl; about 6 min left"),
        (Change.STARTED, "[ 3/12] kubelet …; then kube-proxy, kubectl"),
        (Change.FINISHED, "[ 3/12] kubelet: 41 s; about 6 min left"),
        (Change.WAITING, "[ 3/12] kubelet: another process is building it; waiting for that"),
        (Change.TICK, None),
    ],
)
def test_each_change_has_its_line(change: Change, text: str | None) -> None:
    assert line(state(change)) == text


def test_the_last_line_promises_nothing_more() -> None:
    last = state(Change.FINISHED, done=12, waiting=(), seconds_left=0.0)
    assert line(last) == "[12/12] kubelet: 41 s"


def test_the_live_display_shows_what_runs_and_since_when() -> None:
    assert rows(state(Change.TICK)) == ["kubelet … 12 s", "then kube-proxy, kubectl", "about 6 min left"]


def test_without_a_terminal_there_is_one_line_for_each_change_and_none_for_time_passing() -> None:
    stream = io.StringIO()
    with shown(stream=stream) as report:
        for change in (Change.STARTED, Change.TICK, Change.TICK, Change.FINISHED):
            report(state(change))
    assert stream.getvalue().splitlines() == [line(state(Change.STARTED)), line(state(Change.FINISHED))]


def test_on_a_terminal_finished_steps_stay_and_names_are_not_taken_for_markup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")  # one that can do nothing shows nothing that changes
    stream = io.StringIO()
    with live(Console(file=stream, force_terminal=True, width=100)) as report:
        report(state(Change.TICK))
        report(state(Change.FINISHED, step="[red]"))
    text = stream.getvalue()
    assert "[ 3/12] [red]: 41 s; about 6 min left" in text
    assert "kubelet … 12 s" in text


def test_a_given_report_is_used_as_it_is() -> None:
    seen: list[State] = []
    with shown(seen.append) as report:
        report(state(Change.TICK))
    assert [s.change for s in seen] == [Change.TICK]
    stream = io.StringIO()
    plain(stream)(seen[0])
    assert stream.getvalue() == ""
