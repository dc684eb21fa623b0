"""The page about the hub names every trait, reason and metric, in the words of the source."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from hub_ext.cluster.texts import sentence
from hub_ext.cluster.waits import WaitReason
from hub_ext.errors import SelectionReason
from hub_ext.metrics import Metrics
from hub_ext.quota.verdicts import Reason
from hub_ext.spawner import WorkspaceSpawner

PAGE = (Path(__file__).parents[2] / "hub_ext" / "REFERENCE.md").read_text(encoding="utf-8")


def own_traits():
    return [
        name
        for name, trait in WorkspaceSpawner.class_traits(config=True).items()
        if trait.this_class.__module__.startswith("hub_ext.")
    ]


def test_there_are_traits_to_look_for():
    assert {"catalog", "queue_timeout", "run_namespaces", "start_log"} <= set(own_traits())


@pytest.mark.parametrize("name", own_traits())
def test_traits_have_a_row(name):
    assert f"\n| `{name}` | " in PAGE


@pytest.mark.parametrize("reason", [*SelectionReason, *Reason])
def test_reasons_of_refusals_have_a_row(reason):
    assert f"\n| `{reason}` | " in PAGE


@pytest.mark.parametrize("reason", WaitReason)
def test_reasons_of_waits_have_a_row_with_their_text(reason):
    assert f"\n| `{reason}` | {sentence(reason, ' (…)')} |\n" in PAGE


def test_metrics_have_a_row_with_their_labels():
    registry = CollectorRegistry()
    Metrics(registry)
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"\n| `{name}` | " in PAGE
