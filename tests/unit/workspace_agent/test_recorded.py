"""The agent's readings and reports on a real H200, as `python -m tests.gpu.record` wrote them down.

Each scenario was recorded twice: on a card of the workspace's own, and on one that a process of another
process-id namespace kept computing on all the time.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hub_ext.protocol import Attribution, Origin, Report
from services.idle_culler.agent_signal import agent_signals
from services.idle_culler.facts import Facts
from services.idle_culler.limits import Limits
from services.idle_culler.policy import Thresholds
from services.idle_culler.reasons import Reason
from services.idle_culler.reports import reduce_report
from services.idle_culler.signal import Value
from services.workspace_agent.gpus import Device, attribute
from tests.fakes.culler import hub

READINGS = Path(__file__).parent / "readings"
CARDS = ("alone", "shared")
BUSY, RESTING = 0.2, 0.02
"""A load that shares the card with one other process gets about half of it."""
HELD_BYTES = 8 * 2**30


class Expected(NamedTuple):
    """What a scenario is."""

    origin: Origin | None
    """Whose the process on the GPU is."""
    works: bool
    foreground: bool = False


SCENARIOS = {
    "nothing": Expected(None, works=False),
    "kernel-computes": Expected(Origin.KERNEL, works=True),
    "kernel-holds-memory": Expected(Origin.KERNEL, works=False),
    "terminal-trains": Expected(Origin.TERMINAL, works=True, foreground=True),
    "background-trains": Expected(Origin.TERMINAL, works=True),
    "detached-trains": Expected(Origin.DETACHED, works=True),
}


def recorded(card: str, scenario: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((READINGS / f"{card}.json").read_text())["scenarios"][scenario]
    return found


def devices(entries: list[dict[str, Any]]) -> list[Device]:
    """Readings of NVML; JSON knows no numbers as keys, and no sets."""
    return [
        Device(
            uuid=entry["uuid"],
            holders={int(pid): size for pid, size in entry["holders"].items()},
            local=frozenset(entry["local"]),
            former=frozenset(entry["former"]),
            use={int(pid): share for pid, share in entry["use"].items()},
            peak=entry["peak"],
        )
        for entry in entries
    ]


def test_every_scenario_was_recorded() -> None:
    for card in CARDS:
        assert set(json.loads((READINGS / f"{card}.json").read_text())["scenarios"]) == set(SCENARIOS)


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nvml_s_readings_are_attributed(card: str, scenario: str) -> None:
    expected = SCENARIOS[scenario]
    (gpu,) = attribute(devices(recorded(card, scenario)["devices"]), Attribution.TRUSTED).gpus
    assert gpu.use is not None
    assert (gpu.use > BUSY) == expected.works
    assert expected.works or gpu.use < RESTING
    assert bool(gpu.memory_bytes) == (expected.origin is not None)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_other_process_was_seen_and_is_not_ours(scenario: str) -> None:
    (device,) = devices(recorded("shared", scenario)["devices"])
    assert device.use
    assert device.holders is not None
    others = {pid: share for pid, share in device.use.items() if pid not in device.holders}
    assert sum(others.values()) > BUSY
    assert device.peak is not None
    assert device.peak > 0.9, "the card as a whole says nothing of this workspace"


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_reports_are_right(card: str, scenario: str) -> None:
    expected = SCENARIOS[scenario]
    report = Report.model_validate(recorded(card, scenario)["report"])
    assert report.complete
    assert report.self_test.attribution is Attribution.TRUSTED
    (gpu,) = report.gpus
    assert gpu.use is not None
    assert (gpu.use > BUSY) == expected.works
    holders = [process for process in report.processes if process.gpu_memory_bytes is not None]
    assert [(holder.origin, holder.foreground) for holder in holders] == (
        [] if expected.origin is None else [(expected.origin, expected.foreground)]
    )
    assert scenario != "kernel-holds-memory" or (gpu.memory_bytes or 0) > HELD_BYTES


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_culler_understands_them(card: str, scenario: str) -> None:
    """Once, a minute after the kernel was last seen to begin or end something."""
    report = Report.model_validate(recorded(card, scenario)["report"])
    rested = [kernel.model_copy(update={"state_seconds": 60.0}) for kernel in report.kernels]
    quiet = [terminal.model_copy(update={"quiet_seconds": 60.0}) for terminal in report.terminals]
    report = report.model_copy(update={"kernels": tuple(rested), "terminals": tuple(quiet)})
    now = report.sent + timedelta(seconds=1)
    facts = Facts(user="ada", at=now, hub=hub(now), agent=reduce_report(report, now))
    work, _ = agent_signals(facts, Limits(), Thresholds())
    if SCENARIOS[scenario].works:
        assert (work.value, work.reason) == (Value.BUSY, Reason.GPU_ACTIVE)
        assert work.subject, "it is named who uses the card"
    else:
        held = SCENARIOS[scenario].origin is not None
        assert (work.value, work.reason is Reason.MEMORY_HELD) == (Value.IDLE, held)


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_server_hardly_noticed(card: str, scenario: str) -> None:
    """A report every four seconds took less of a processor than one every thirty may."""
    assert recorded(card, scenario)["server_cpu"] < 0.01
