"""The page about the prepuller names every setting, right, word and metric, in the words of the source."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from services.prepuller import settings as model
from services.prepuller.app import PrepullerService, PrepullerSettings
from services.prepuller.metrics import Metrics
from services.prepuller.reasons import BLAMES, HOLD_TEXTS, TEXTS, Evidence, Hold, Reason, Removal, State
from services.prepuller.reports import FINDINGS
from services.prepuller.rights import RIGHTS

PAGE = Path(model.__file__).with_name("REFERENCE.md").read_text(encoding="utf-8")
PARTS = {"extra_images": model.ExtraImage, "schedule": model.Seats}


def keys(kind: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings with what they mean; those of parts by their path."""
    for name, field in kind.model_fields.items():
        key = prefix + to_camel(name)
        if isinstance(field.default, model.Model):
            yield from keys(type(field.default), f"{key}.")
            continue
        yield key, " ".join((field.description or "").split())
        if name in PARTS:
            yield from keys(PARTS[name], f"{key}[].")


@pytest.mark.parametrize(("key", "what"), [*keys(model.Settings)])
def test_settings_have_a_row_with_their_meaning(key: str, what: str) -> None:
    assert what
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{key}` |"))
    assert row.endswith(f"| {what} |")


@pytest.mark.parametrize("name", ["catalog", "start_log"])
def test_settings_of_the_process_have_a_row(name: str) -> None:
    what = " ".join((PrepullerSettings.model_fields[name].description or "").split())
    assert f"\n| `{to_camel(name)}` | | {what} |\n" in PAGE


@pytest.mark.parametrize("rule", RIGHTS.rules, ids=lambda rule: rule.resources[0])
def test_rights_have_a_row_with_their_reason(rule: object) -> None:
    assert f"| {', '.join(rule.resources)} | {', '.join(rule.verbs)} | {rule.why} |" in PAGE  # type: ignore[attr-defined]


@pytest.mark.parametrize("reason", Reason)
def test_reasons_have_a_row_with_their_text(reason: Reason) -> None:
    assert f"\n| `{reason}` | {BLAMES[reason]} | {TEXTS[reason]} |\n" in PAGE


@pytest.mark.parametrize("hold", Hold)
def test_holds_have_a_row_with_their_text(hold: Hold) -> None:
    assert f"\n| `{hold}` | {HOLD_TEXTS[hold]} |\n" in PAGE


@pytest.mark.parametrize("word", [*State, *Evidence, *Removal, *FINDINGS])
def test_words_have_a_row(word: StrEnum) -> None:
    assert f"\n| `{word}` | " in PAGE


def test_metrics_have_a_row_with_their_labels() -> None:
    registry = CollectorRegistry()
    for metric in vars(Metrics(registry)).values():
        (family,) = metric.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(metric._labelnames)
        assert f"\n| `{name}` | {labels} | {family.documentation} |\n" in PAGE


def test_paths_have_a_row() -> None:
    service = object.__new__(PrepullerService)
    for path, _, _ in service.handlers():
        assert f"\n| `/{path}" in PAGE
