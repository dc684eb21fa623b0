"""Reports, made of what was read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hub_ext.protocol import Attribution, Document, Gpu, Origin, Report, SelfTest
from services.workspace_agent.gpus import GpuReading
from services.workspace_agent.processes import Shell, Stat, Use
from services.workspace_agent.reports import (
    LINE,
    MOST_DOCUMENTS,
    MOST_PROCESSES,
    WORD,
    LabState,
    Sample,
    Sender,
    StateClock,
    build_report,
)
from services.workspace_agent.states import KernelState, TerminalState

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NO_LAB = LabState()
SELF_TEST = SelfTest(attribution=Attribution.TRUSTED)


def use(pid: int, *, cpu: float | None = 0.0, origin: Origin = Origin.DETACHED, **fields: Any) -> Use:
    stat = Stat(
        pid=pid,
        parent=1,
        group=pid,
        session=pid,
        command=fields.pop("command", f"p{pid}"),
        started=NOW.timestamp() - 600,
        cpu_seconds=0,
    )
    return Use(stat=stat, origin=origin, own=cpu, **{"owner": "", **fields})


def kernel(**fields: Any) -> KernelState:
    defaults: dict[str, Any] = {"id": "k1", "name": "python3", "pid": 20, "state": "idle", "connections": 1}
    return KernelState(**{**defaults, "path": "a.ipynb", "waits_for_input": False, **fields})


def report(sample: Sample, lab: LabState = NO_LAB, state_seconds: dict[str, float] | None = None) -> Report:
    """The report, as it arrives."""
    built = build_report(
        sample,
        Sender(server="gpu", agent="a1", number=7),
        self_test=SELF_TEST,
        lab=lab,
        state_seconds=state_seconds or {},
        now=NOW,
    )
    return Report.model_validate_json(built.model_dump_json(exclude_defaults=True))


def sample(*uses: Use, **fields: Any) -> Sample:
    return Sample(uses=uses, window_seconds=30.0, **fields)


def test_who_reports_and_for_how_long() -> None:
    found = report(sample())
    assert (found.server, found.agent, found.number, found.sent) == ("gpu", "a1", 7, NOW)
    assert (found.window_seconds, found.complete, found.documents) == (30.0, True, None)


def test_the_busiest_come_first_and_the_server_is_left_out() -> None:
    gpus = GpuReading(use={3: 0.5}, memory_bytes={3: 10, 4: 20})
    found = report(
        sample(
            use(1, cpu=0.9, origin=Origin.SERVER),
            use(2, cpu=0.8),
            use(3, cpu=0.1),
            use(4, cpu=0.0),
            use(5, cpu=0.0, io_bytes=10**6),
            use(6, cpu=None),
            gpus=gpus,
        )
    )
    assert [process.pid for process in found.processes] == [3, 2, 5, 4, 6]
    assert [(process.gpu, process.gpu_memory_bytes) for process in found.processes[:2]] == [
        (0.5, 10),
        (None, None),
    ]


def test_lists_are_bounded() -> None:
    found = report(
        sample(*(use(pid, cpu=1 / pid) for pid in range(1, MOST_PROCESSES + 11))),
        LabState(documents=tuple(Document(path=str(number)) for number in range(MOST_DOCUMENTS + 9))),
    )
    assert [process.pid for process in found.processes] == list(range(1, MOST_PROCESSES + 1))
    assert len(found.documents or ()) == MOST_DOCUMENTS


@pytest.mark.parametrize("name", ["x" * 5000, "\udcff", "\x00", "<script>", ""])
def test_names_of_any_kind_are_reported(name: str) -> None:
    shell = Shell(name=name, foreground=2)
    found = report(
        sample(
            use(2, command=name, origin=Origin.TERMINAL, owner=name, foreground=True),
            kernels=(kernel(name=name, path=name, state=name),),
            terminals=(TerminalState(pid=1, shell=shell, last_activity=None),),
        )
    )
    assert len(found.processes[0].command) <= WORD
    assert len(found.kernels[0].path) <= LINE
    assert found.terminals[0].foreground == found.processes[0].command


def test_kernels_are_measured_as_trees_and_remote_ones_not_at_all() -> None:
    found = report(
        sample(
            use(20, cpu=0.1, origin=Origin.KERNEL, owner="k1"),
            use(21, cpu=0.4, origin=Origin.KERNEL, owner="k1"),
            kernels=(kernel(), kernel(id="k2", pid=None, connections=None, waits_for_input=None)),
        ),
        state_seconds={"k1": 40.0},
    )
    local, remote = found.kernels
    assert (local.cpu, local.state_seconds, local.waits_for_input) == (0.5, 40.0, False)
    assert (remote.cpu, remote.state_seconds, remote.connections, remote.waits_for_input) == (None,) * 4


def test_terminals_tell_how_long_they_are_quiet() -> None:
    shell = Shell(name="1", foreground=30)
    ago, ahead = NOW - timedelta(seconds=90), NOW + timedelta(seconds=90)
    found = report(
        sample(
            use(30, origin=Origin.TERMINAL, owner="1"),
            terminals=(
                TerminalState(pid=30, shell=shell, last_activity=ago),
                TerminalState(pid=30, shell=shell, last_activity=ahead),
            ),
        )
    )
    assert [terminal.quiet_seconds for terminal in found.terminals] == [90, 0]


def test_a_reading_that_failed_makes_the_report_incomplete() -> None:
    assert not report(sample(gpus=GpuReading(complete=False))).complete
    assert not report(sample(complete=False)).complete


def test_gpus_are_passed_on() -> None:
    gpu = Gpu(uuid="GPU-a", use=0.3, memory_bytes=5)
    assert report(sample(gpus=GpuReading(gpus=(gpu,)))).gpus == (gpu,)


def test_states_are_timed_from_when_they_were_first_seen() -> None:
    clock = StateClock()
    assert clock.seconds({"k1": "busy"}, 10) == {"k1": 0}
    assert clock.seconds({"k1": "busy", "k2": "idle"}, 40) == {"k1": 30, "k2": 0}
    assert clock.seconds({"k1": "idle"}, 50) == {"k1": 0}
    assert clock.seconds({"k2": "idle"}, 60) == {"k2": 0}
