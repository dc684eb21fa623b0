"""The page about all services names every common setting, variable and metric."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from hub_ext.managed import CATALOG, SETTINGS
from services.base import ServiceSettings
from services.base.loop import OUTCOMES, LoopMetrics
from services.base.service import NEEDED

PAGE = (Path(__file__).parents[3] / "services" / "REFERENCE.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("field", [f.alias for f in ServiceSettings.model_fields.values()])
def test_settings_have_a_row(field):
    assert f"\n| `{field}` | " in PAGE


@pytest.mark.parametrize("name", [*NEEDED, SETTINGS, CATALOG])
def test_variables_are_named(name):
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcomes_are_named(outcome):
    assert f"`{outcome}`" in PAGE


def test_metrics_have_a_row():
    registry = CollectorRegistry()
    LoopMetrics(registry)
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"\n| `{name}` | " in PAGE
