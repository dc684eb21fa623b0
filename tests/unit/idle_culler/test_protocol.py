"""What the agent and the culler say to one another: readable by older and newer ones, and bounded."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from hub_ext.protocol import Answer, Attribution, Origin, Process, Report, SelfTest, Terminal
from services.idle_culler.inbox import Inbox
from services.idle_culler.reports import reduce_report
from tests.fakes.culler import NOON

LEAST: dict[str, Any] = {
    "agent": "a",
    "number": 1,
    "sent": "2026-11-30T12:00:00Z",
    "windowSeconds": 30,
    "selfTest": {"attribution": "no-gpu"},
}


def read(**fields: Any) -> Report:
    return Report.model_validate_json(json.dumps({**LEAST, **fields}))


def test_the_least_report_is_read_and_unknown_keys_are_left_out() -> None:
    report = read(weather="fine", kernels=[{"id": "k", "state": "busy", "mood": "good"}])
    assert report.kernels[0].state == "busy"
    assert Report.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize(
    "fields",
    [
        {"sent": "2026-11-30T12:00:00"},
        {"windowSeconds": -1},
        {"agent": "x" * 81},
        {"v": 2},
        {"processes": [{"pid": 1, "command": "x", "origin": "kernel"}] * 257},
        {"processes": [{"pid": 1, "command": "x", "origin": "elsewhere"}]},
        {"documents": [{"path": "x" * 1025}]},
    ],
)
def test_what_is_out_of_bounds_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(**fields)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-1"])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    text = json.dumps(LEAST)[:-1] + f', "inputSeconds": {number}}}'
    with pytest.raises(ValidationError):
        Report.model_validate_json(text)


def test_an_answer_says_only_what_is_so() -> None:
    answer = Answer(state="in-use", reason="kernel-runs", text="A kernel is running.")
    data = json.loads(answer.model_dump_json())
    assert (data["observeOnly"], data["secondsLeft"], data["save"], data["buttons"]) == (
        False,
        None,
        None,
        [],
    )


# --- what is kept of a report


def process(**fields: Any) -> Process:
    return Process(**{"pid": 7, "command": "python", "origin": Origin.DETACHED, **fields})


def reduced(*processes: Process, terminals: tuple[Terminal, ...] = ()) -> Any:
    report = Report(
        agent="a",
        number=1,
        sent=NOON,
        window_seconds=30,
        processes=processes,
        terminals=terminals,
        self_test=SelfTest(attribution=Attribution.NO_GPU),
    )
    return reduce_report(report, NOON)


def test_processes_of_one_kernel_count_together_and_others_alone() -> None:
    found = reduced(
        process(pid=1, origin=Origin.KERNEL, owner="k", cpu=0.03, io_bytes=30),
        process(pid=2, origin=Origin.KERNEL, owner="k", cpu=0.04, command="loader"),
        process(pid=3, cpu=0.01),
        process(pid=4, cpu=0.02),
    )
    assert [(one.origin, one.owner, round(one.cpu or 0, 2)) for one in found.work] == [
        ("kernel", "k", 0.07),
        ("detached", "4", 0.02),
        ("detached", "3", 0.01),
    ]
    assert (found.work[0].command, found.work[0].io_rate) == ("loader", 1.0)


@pytest.mark.parametrize("command", ["top", "nvidia-smi", "watch", "tail"])
def test_what_only_watches_is_no_work(command: str) -> None:
    assert reduced(process(command=command, cpu=0.5)).work == ()
    (terminal,) = reduced(terminals=(Terminal(name="1", foreground=command, quiet_seconds=1.0),)).terminals
    assert (terminal.foreground, terminal.quiet_seconds) == ("", None)


def test_a_shell_waits_but_what_is_typed_and_computed_in_it_counts() -> None:
    (terminal,) = reduced(terminals=(Terminal(name="1", foreground="bash", quiet_seconds=1.0),)).terminals
    assert (terminal.foreground, terminal.quiet_seconds) == ("", 1.0)
    assert reduced(process(command="bash", cpu=0.9)).work[0].cpu == 0.9


def test_the_server_itself_is_no_work() -> None:
    assert reduced(process(origin=Origin.SERVER, cpu=0.9)).work == ()


def test_what_was_not_measured_stays_so() -> None:
    assert reduced(process(cpu=None)).work[0].cpu is None


def test_reports_of_a_session_before_count_for_nothing() -> None:
    inbox = Inbox()
    inbox.put("ada", read(documents=[{"path": "a.ipynb"}]), NOON)
    assert inbox.unsaved(("ada", "")) == ("a.ipynb",)
    assert inbox.facts(("ada", ""), since=NOON - timedelta(hours=1)) is not None
    assert inbox.facts(("ada", ""), since=NOON + timedelta(seconds=1)) is None
    inbox.keep_only(())
    assert inbox.facts(("ada", ""), since=None) is None


def test_a_new_run_of_the_agent_counts_from_the_beginning() -> None:
    inbox = Inbox()
    inbox.put("ada", read(number=90), NOON)
    inbox.put("ada", read(number=89, documents=[]), NOON)
    assert inbox.facts(("ada", ""), since=None).unsaved is None  # type: ignore[union-attr]
    inbox.put("ada", read(agent="b", number=0, documents=[]), NOON)
    assert inbox.facts(("ada", ""), since=None).unsaved == 0  # type: ignore[union-attr]
