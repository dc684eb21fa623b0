"""What the agent and the culler say to one another: readable by older and newer ones, and bounded."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from hub_ext.protocol import Answer, Attribution, Kernel, Origin, Process, Report, SelfTest, Terminal
from services.idle_culler.agent_signal import agent_signals
from services.idle_culler.inbox import MOST as LETTERS
from services.idle_culler.inbox import Inbox
from services.idle_culler.limits import Limits
from services.idle_culler.policy import Thresholds
from services.idle_culler.reports import MOST, reduce_report
from tests.fakes.culler import NOON, idle_facts

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
        {"windowSeconds": 1e300},
        {"inputSeconds": 1e12},
        {"kernels": [{"id": "k", "state": "busy", "stateSeconds": 1e300}]},
        {"processes": [{"pid": 1, "command": "x", "origin": "kernel", "ioBytes": 10**400}]},
        {"server": "x" * 256},
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


def reduced(*processes: Process, **fields: Any) -> Any:
    report = Report(
        agent="a",
        number=1,
        sent=NOON,
        window_seconds=30,
        processes=processes,
        self_test=SelfTest(attribution=Attribution.NO_GPU),
        **fields,
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


def terminal_work(**fields: Any) -> Any:
    (found,) = reduced(process(origin=Origin.TERMINAL, owner="1", cpu=0.9, **fields)).work
    return found


def test_what_a_terminal_does_not_show_is_in_its_background() -> None:
    assert terminal_work(foreground=False).background
    assert not terminal_work(foreground=True).background
    assert not terminal_work(command="bash").background, "a loop of short commands is the shell's own"
    assert not reduced(process(cpu=0.9)).work[0].background


def test_the_use_of_gpus_is_kept_by_who_uses_them() -> None:
    (found,) = reduced(
        process(pid=1, origin=Origin.KERNEL, owner="k", cpu=0.9, command="loader"),
        process(
            pid=2, origin=Origin.KERNEL, owner="k", cpu=0.1, gpu=0.8, gpu_memory_bytes=5, command="train"
        ),
        process(pid=3, origin=Origin.KERNEL, owner="k", gpu=0.1, gpu_memory_bytes=6),
    ).work
    assert (found.command, found.gpu, found.gpu_memory) == ("train", 0.8, 11)
    assert (reduced(process()).work[0].gpu, reduced(process()).work[0].gpu_memory) == (None, None)


def test_what_moves_files_is_not_crowded_out_by_what_computes() -> None:
    crowd = [process(pid=pid, cpu=0.04) for pid in range(1, 100)]
    found = reduced(*crowd, process(pid=200, cpu=0.0, io_bytes=10**9, command="rsync")).work
    assert "rsync" in {one.command for one in found}
    assert len(found) <= 3 * MOST


def test_a_kernel_counts_as_a_whole_however_many_processes_are_listed() -> None:
    kernels = (
        Kernel(id="k", state="idle", state_seconds=900.0, cpu=2.5),
        Kernel(id="r", state="idle", cpu=0),
    )
    (found,) = reduced(process(origin=Origin.KERNEL, owner="k", cpu=0.01), kernels=kernels).work
    assert (found.owner, found.cpu, found.command) == ("k", 2.5, "python")
    (found,) = reduced(kernels=kernels).work
    assert (found.owner, found.cpu) == ("k", 2.5)
    watcher = process(pid=8, origin=Origin.KERNEL, owner="k", cpu=2.5, command="nvidia-smi")
    assert [one.cpu for one in reduced(watcher, kernels=kernels).work] == [0.0]


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


@pytest.mark.parametrize("seconds", [0, 1e9])
def test_what_is_within_bounds_can_be_judged(seconds: float) -> None:
    kernels = [{"id": "k", "state": "idle", "stateSeconds": seconds}]
    report = read(windowSeconds=seconds, inputSeconds=seconds, kernels=kernels, server="x" * 255)
    facts = idle_facts(NOON, agent=reduce_report(report, NOON))
    assert agent_signals(facts, Limits(), Thresholds())


def test_a_user_cannot_fill_the_inbox_with_servers_that_are_none() -> None:
    inbox = Inbox()
    for number in range(3 * LETTERS):
        inbox.put("eve", read(server=f"s{number}"), NOON)
    inbox.put("ada", read(), NOON)
    held = [number for number in range(3 * LETTERS) if inbox.facts(("eve", f"s{number}"), since=None)]
    assert held == list(range(LETTERS))
    assert inbox.facts(("ada", ""), since=None)


def test_a_new_run_of_the_agent_counts_from_the_beginning() -> None:
    inbox = Inbox()
    inbox.put("ada", read(number=90), NOON)
    inbox.put("ada", read(number=89, documents=[]), NOON)
    assert inbox.facts(("ada", ""), since=None).unsaved is None  # type: ignore[union-attr]
    inbox.put("ada", read(agent="b", number=0, documents=[]), NOON)
    assert inbox.facts(("ada", ""), since=None).unsaved == 0  # type: ignore[union-attr]
