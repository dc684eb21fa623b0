"""Situations that people have reported, asked of the command as an admin would ask it."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.cli import main
from hub_ext.cli.catalogs import UsageError
from hub_ext.errors import Finding
from services.idle_culler import verb
from services.idle_culler.facts import FACTS, HubFacts
from services.idle_culler.policy import Thresholds
from services.idle_culler.signals import hub_signal
from tests.fakes.culler import idle_facts

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = {"defaults": {"idleTimeout": "1h", "warnBefore": ["10m"]}}


def ago(**span: float) -> str:
    return (NOON - timedelta(**span)).isoformat()


def gpu(*readings: dict[str, Any], window: float = 10800, **fields: Any) -> dict[str, Any]:
    full = {"uuid": "GPU-1", "coverage": 1.0, "ageSeconds": 20}
    return {"at": ago(), "windowSeconds": window, "gpus": [{**full, **one} for one in readings], **fields}


def server(**parts: Any) -> dict[str, Any]:
    """A server with one card, up since the morning and quiet by all signals for three hours."""
    whole = {
        "user": "lena",
        "at": ago(),
        "hub": {"started": ago(hours=6), "lastActivity": ago(hours=3)},
        "pod": {"namespace": "hub", "name": "jupyter-lena", "devices": {"nvidia.com/gpu": 1}},
        "gpu": gpu({"engine": 0.0}),
        "cpu": {"at": ago(), "windowSeconds": 10800, "cores": 0.01, "coverage": 1.0},
    }
    return {**whole, **parts}


class Command:
    """`gpu-workspaces cull`, asked in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ask(self, what: str, *servers: Any, policy: Any = HOUR) -> tuple[dict[str, Any], list[Finding]]:
        facts, settings = self.folder / "facts.yaml", self.folder / "settings.yaml"
        facts.write_text(yaml.safe_dump({"servers": list(servers)}))
        settings.write_text(yaml.safe_dump({"policy": policy}))
        return self.run(what, str(facts), f"--settings={settings}")

    @staticmethod
    def run(*words: str) -> tuple[dict[str, Any], list[Finding]]:
        parser = argparse.ArgumentParser()
        verb.configure(parser)
        report = verb.run(parser.parse_args(words))
        assert report.text
        json.dumps(report.result)
        return report.result, list(report.findings)

    def judge(self, one: Any, policy: Any = HOUR) -> dict[str, Any]:
        result, _ = self.ask("judge", one, policy=policy)
        found: dict[str, Any] = result["servers"][-1]
        return found

    def decide(self, one: Any, policy: Any = HOUR) -> str:
        """Judge as of now, and again and again until the warnings have had their time."""
        looks = []
        for minute in range(13):
            look = json.loads(json.dumps(one))
            moment = (NOON + timedelta(minutes=minute)).isoformat()
            look["at"] = moment
            for part in ("gpu", "cpu", "agent"):
                if look.get(part):
                    look[part]["at"] = moment
            looks.append(look)
        result, _ = self.ask("judge", *looks, policy=policy)
        decision: str = result["servers"][-1]["decision"]
        return decision


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_training_with_the_lid_shut_is_kept(command: Command) -> None:
    """The cell prints nothing, so the hub has seen nothing for hours; the card tells the truth."""
    busy = server(gpu=gpu({"engine": 0.94}))
    told = command.judge(busy)
    assert (told["decision"], told["reason"], told["gpuState"]) == ("keep", "gpu-active", "busy")
    assert command.decide(busy) == "keep"


def test_the_longest_session_ends_also_training_after_its_warning(command: Command) -> None:
    policy = {"defaults": {**HOUR["defaults"], "maxDuration": "5h"}}
    busy = server(gpu=gpu({"engine": 0.94}))
    first = command.judge(busy, policy)
    assert (first["decision"], first["reason"], first["left"]) == ("warn", "session-end", "10m")
    assert command.decide(busy, policy) == "cull"


@pytest.mark.parametrize(
    ("engine", "state", "decision"),
    [(0.85, "busy", "keep"), (None, "unknown", "keep"), (0.0, "idle", "cull")],
)
def test_a_slice_is_judged_by_its_engine_alone(command, engine, state, decision) -> None:
    """The plain utilization of a slice reads zero whatever it does."""
    one = server(
        pod={"devices": {"nvidia.com/mig-1g.18gb": 1}, "sharing": "mig"},
        gpu=gpu({"slice": "7", "utilization": 0.0, "engine": engine}),
    )
    assert command.judge(one)["gpuState"] == state
    assert command.decide(one) == decision
    if state == "unknown":
        _, findings = command.ask("judge", one)
        assert [finding.code for finding in findings] == ["no-gpu-readings"]


@pytest.mark.parametrize(
    ("reading", "state", "reason"),
    [
        ({"engine": 0.0, "coverage": 1.0}, "idle", "gpu-quiet"),
        ({"engine": 0.0, "coverage": 0.33}, "unknown", "gpu-gaps"),
        ({"engine": 0.35, "coverage": 0.97}, "busy", "gpu-active"),
        (None, "unknown", "no-gpu-readings"),
    ],
)
def test_gaps_are_not_idleness(command, reading, state, reason) -> None:
    policy = {**HOUR, "thresholds": {"gpu": 0.05, "coverage": 0.8}}
    one = server(gpu=gpu(*([reading] if reading else [])))
    told = command.judge(one, policy)
    signal = next(signal for signal in told["signals"] if signal["source"] == "gpu")
    assert (told["gpuState"], signal["reason"]) == (state, reason)


@pytest.mark.parametrize(
    ("last", "quiet"),
    [
        ("2026-11-30T12:50:00Z", 0),
        ("2026-11-30T10:30:00", 5400),
        ("2026-11-30T12:30:00+02:00", 5400),
    ],
)
def test_times_of_other_zones_and_of_clocks_that_are_ahead(last: str, quiet: float) -> None:
    """A time without zone is UTC; one in the future counts as now and never as less than nothing."""
    facts = FACTS.validate_python(
        server(at="2026-11-30T12:00:00Z", hub={"started": ago(), "lastActivity": last})
    )
    signal = hub_signal(facts, Thresholds())
    assert signal.since is not None
    assert (facts.at - signal.since).total_seconds() == quiet
    assert (signal.reason == "clock-ahead") == (quiet == 0)


def test_an_old_session_ends_whatever_time_the_activity_claims(command: Command) -> None:
    policy = {"defaults": {"maxDuration": "12h", "warnBefore": ["10m"]}}
    one = server(hub={"started": ago(hours=16), "lastActivity": "2026-11-30T12:50:00Z"})
    assert command.decide(one, policy) == "cull"


def test_few_processors_do_not_mean_an_idle_gpu(command: Command) -> None:
    cpu = {"at": ago(), "windowSeconds": 600, "cores": 0.04, "coverage": 1.0}
    assert command.decide(server(cpu=cpu, gpu=gpu({"engine": 0.92}))) == "keep"


def test_without_gpu_readings_processors_may_keep_but_never_condemn(command: Command) -> None:
    assert command.decide(server(gpu=None)) == "keep"
    busy = {"at": ago(), "windowSeconds": 600, "cores": 0.9, "coverage": 1.0}
    assert command.judge(server(gpu=None, cpu=busy))["reason"] == "cpu-active"


def open_tab(**fields: Any) -> dict[str, Any]:
    """A model is loaded, the kernel rests for three hours, and a forgotten page keeps the server alive."""
    kernel = {"id": "k", "state": "idle", "stateSeconds": 11000, "connections": 1}
    agent = {
        "at": ago(),
        "windowSeconds": 10800,
        "kernels": [kernel],
        "attribution": "trusted",
        "inputSeconds": 11000,
    }
    return server(hub={"started": ago(hours=6), "lastActivity": ago(seconds=40)}, agent={**agent, **fields})


def test_a_loaded_model_and_an_open_page_are_no_work(command: Command) -> None:
    assert command.decide(open_tab()) == "cull"
    strict = {"defaults": {**HOUR["defaults"], "ignoreOpenTabs": False}}
    assert command.decide(open_tab(), strict) == "keep"


def test_each_server_of_a_user_is_judged_by_itself(command: Command) -> None:
    active = server(
        pod={"devices": {}}, gpu=None, hub={"started": ago(days=9), "lastActivity": ago(minutes=4)}
    )
    forgotten = server(server="analytics", hub={"started": ago(days=9), "lastActivity": ago(days=3)})
    result, _ = command.ask("judge", active, forgotten)
    assert {one["server"]: one["decision"] for one in result["servers"]} == {"": "keep", "analytics": "warn"}
    assert command.decide(forgotten) == "cull"


# --- replaying


def recording(hours: int = 8, *, used_again: bool = False) -> list[dict[str, Any]]:
    """Five-minute looks at a server that is left alone, and maybe used again at the end."""
    looks = []
    for number in range(hours * 12):
        at = NOON + timedelta(minutes=5 * number)
        busy = used_again and number >= (hours - 1) * 12
        look = server(at=at.isoformat(), gpu=gpu({"engine": 0.9 if busy else 0.0}, window=600))
        look["gpu"]["at"] = look["cpu"]["at"] = at.isoformat()
        look["cpu"]["windowSeconds"] = 600
        looks.append(look)
    return looks


def test_a_replay_counts_what_would_have_come_back(command: Command) -> None:
    result, _ = command.ask("replay", *recording())
    assert (result["sessions"], result["stopped"], result["usedAgain"]) == (1, 1, 0)
    assert result["intervalSeconds"] == 300
    assert result["gpuHoursBack"] == pytest.approx(7, abs=0.3)
    assert result["stops"][0]["reason"] == "gpu-idle"


def test_a_replay_tells_what_a_policy_would_have_cost(command: Command) -> None:
    result, _ = command.ask("replay", *recording(used_again=True))
    assert result["usedAgain"] == 1
    assert result["gpuHoursBack"] == pytest.approx(6, abs=0.3)


def test_a_recording_of_several_days_is_read_as_it_was_written(tmp_path: Path) -> None:
    looks = recording()
    for day, part in (("2026-11-29", looks[:40]), ("2026-11-30", looks[40:])):
        with gzip.open(tmp_path / f"observed-{day}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(look) + "\n" for look in part)
    settings = tmp_path / "s.yaml"
    settings.write_text(yaml.safe_dump({"policy": HOUR}))
    result, _ = Command.run("replay", str(tmp_path), f"--settings={settings}")
    assert result["stopped"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servers: [{user: a}]", "at: Field required"),
        ("servers: [{user: a, at: 2026-01-01T00:00:00Z, hub: {started: null}, gpus: 1}]", "gpus: "),
        ("servers: [{user: a, at: 2026-01-01T00:00:00Z, hub: {started: .inf}}]", "hub.started: "),
        ("{", "neither JSON nor YAML"),
        ("42", "Input should be"),
        ("servers: {a: 1}", "Input should be|Field required|Unexpected"),
        ("[" * 3000, "too deeply"),
        ("a: &a {b: *a}", "contains itself"),
        ("servers: []", "no observations"),
    ],
)
def test_what_cannot_be_read_names_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "facts.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        Command.run("judge", str(path))


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-12], lambda raw: raw[:12] + b"\xff" * 9, lambda raw: b"{}"]
)
def test_a_recording_that_was_cut_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "observed-2026-11-30.jsonl.gz"
    path.write_bytes(damage(gzip.compress(json.dumps(server()).encode())))
    with pytest.raises(UsageError, match=f"{path.name}: cannot be read"):
        Command.run("judge", str(path))


@pytest.mark.parametrize("words", [["--json", "judge"], ["judge", "--json"]])
def test_the_command_has_the_verb(
    words: list[str], command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    command.ask("judge", server())
    assert main(["cull", *words, str(command.folder / "facts.yaml")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verb"], told["result"]["servers"][0]["user"]) == ("cull", "lena")


def test_facts_survive_being_written_and_read() -> None:
    facts = idle_facts(NOON, hub=HubFacts(started=NOON))
    assert FACTS.validate_json(FACTS.dump_json(facts, by_alias=True)) == facts
