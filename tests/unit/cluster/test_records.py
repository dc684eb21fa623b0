"""What is kept and counted about starts."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from hub_ext import audit
from hub_ext.audit import StartLog, read_records
from hub_ext.cluster.starts import Outcome, StartRecord
from hub_ext.cluster.watch import Health
from hub_ext.metrics import Metrics
from tests.unit.cluster.objects import NOW

ONE = StartRecord(
    at=NOW,
    profile="gpu",
    version=3,
    pool="h200",
    outcome=Outcome.STARTED,
    seconds=60,
    phases={"pull": 40, "warm-up": 20},
    warm=False,
)


def test_starts_are_remembered_over_a_restart_without_their_users(tmp_path: Path) -> None:
    path = tmp_path / "starts.jsonl"
    log = StartLog(path)
    for number in range(3):
        log.add(replace(ONE, seconds=60 + number), user="ada")
    assert "ada" not in path.read_text()
    again = StartLog(path)
    assert again.records == log.records
    assert again.usual(profile="gpu", pool="h200").pull == timedelta(seconds=40)


def test_a_line_cut_by_a_crash_costs_one_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "starts.jsonl"
    StartLog(path).add(ONE)
    whole = path.read_text()
    path.write_text(whole + "\n" + whole[:40] + "\n[]\n" + whole)
    assert len(StartLog(path).records) == 2
    assert [record.args[1] for record in caplog.records if record.args and "left out" in record.message] == [
        3,
        4,
    ]


def test_a_file_that_cannot_be_written_costs_the_record_and_not_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = StartLog(tmp_path / "missing" / "starts.jsonl")
    log.add(ONE)
    assert log.records == (ONE,)
    assert "start not recorded" in caplog.text


def test_a_full_file_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "LARGEST_FILE", 10)
    path = tmp_path / "starts.jsonl"
    log = StartLog(path)
    log.add(ONE)
    log.add(ONE)
    assert len(path.read_text().splitlines()) == 1
    assert len((tmp_path / "starts.jsonl.1").read_text().splitlines()) == 1


def test_the_log_has_the_user_and_the_file_is_optional(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        StartLog().add(ONE, user="ada")
    assert "user=ada profile=gpu version=3 pool=h200 outcome=started" in caplog.text


def test_lines_are_read_from_anywhere() -> None:
    assert list(read_records([json.dumps(ONE.as_dict()), ""], name="x")) == [ONE]


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"gpu_workspaces_{name}", labels)


def test_starts_are_counted_by_profile_pool_outcome_and_reason() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.count_start(ONE)
    metrics.count_start(replace(ONE, outcome=Outcome.FAILED, reason="image-not-found"))
    of = {"profile": "gpu", "pool": "h200"}
    assert sample(registry, "starts_total", **of, outcome="started", reason="") == 1
    assert sample(registry, "starts_total", **of, outcome="failed", reason="image-not-found") == 1
    assert sample(registry, "start_seconds_count", **of) == 1, "a failed start has no time"
    assert sample(registry, "start_phase_seconds_sum", pool="h200", phase="pull") == 40


def test_refusals_and_the_watch_are_shown() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.count_refusal("user-limit", profile="gpu")
    metrics.show_watch({"nodes": Health.DENIED})
    assert sample(registry, "refusals_total", profile="gpu", reason="user-limit") == 1
    assert sample(registry, "watch_health", source="nodes", health="denied") == 1
    assert sample(registry, "watch_health", source="nodes", health="live") == 0
