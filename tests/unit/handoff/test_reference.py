"""The reference says what the code does."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from services.job_handoff.metrics import Metrics
from services.job_handoff.reference import FILE, filled


def test_the_tables_are_those_of_the_code() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert text == filled(text), "run python -m services.job_handoff.reference"


def test_every_metric_is_described() -> None:
    registry = CollectorRegistry()
    Metrics(registry)
    text = FILE.read_text(encoding="utf-8")
    for family in registry.collect():
        assert f"`{family.name}" in text
