"""What is written down, and for how long."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.idle_culler.facts import FACTS, KernelFacts, TerminalFacts, Work
from services.idle_culler.record import Recorder, recordings
from services.idle_culler.settings import Record
from tests.fakes.culler import NOON, agent, idle_facts

SECRETS = agent(
    NOON,
    work=(Work(origin="detached", owner="7", command="secret-project", cpu=0.9),),
    kernels=(KernelFacts(id="k", state="busy", name="secret.ipynb"),),
    terminals=(TerminalFacts(name="1", foreground="secret-tool", quiet_seconds=3.0),),
)


def settings(folder: Path, **fields: Any) -> Record:
    return Record.model_validate({"folder": folder, **fields})


def lines(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


async def test_servers_are_written_down_every_few_minutes_and_read_back(tmp_path: Path) -> None:
    recorder = Recorder(settings(tmp_path / "new", every="5m"))
    for minute in range(11):
        await recorder.note([idle_facts(NOON)], NOON + timedelta(minutes=minute))
    (path,) = recordings(tmp_path / "new")
    assert [FACTS.validate_python(line) for line in lines(path)] == [idle_facts(NOON)] * 3


async def test_what_people_named_is_not_written_down(tmp_path: Path) -> None:
    await Recorder(settings(tmp_path)).note([idle_facts(NOON, agent=SECRETS)], NOON)
    (path,) = recordings(tmp_path)
    assert "secret" not in json.dumps(lines(path))
    found = FACTS.validate_python(lines(path)[0])
    assert found.agent
    assert found.agent.terminals[0].foreground


async def test_old_days_go(tmp_path: Path) -> None:
    recorder = Recorder(settings(tmp_path, days=2))
    (tmp_path / "something-else").write_text("stays")
    for day in range(5):
        await recorder.note([], NOON + timedelta(days=day))
    assert [path.name[9:19] for path in recordings(tmp_path)] == ["2026-12-02", "2026-12-03", "2026-12-04"]
    assert (tmp_path / "something-else").exists()


async def test_a_full_disk_costs_the_recording_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("no folder")
    await Recorder(settings(tmp_path / "file")).note([idle_facts(NOON)], NOON)
    assert "not recorded" in caplog.text
