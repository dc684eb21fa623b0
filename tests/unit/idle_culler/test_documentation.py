"""The page about the service says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from services.base import read_settings
from services.idle_culler.metrics import CullerMetrics
from services.idle_culler.policy import Mode, Settings
from services.idle_culler.reasons import TEXTS, Reason
from services.idle_culler.reference import FILE, reference
from services.idle_culler.rights import RIGHTS
from services.idle_culler.settings import CullerSettings
from services.idle_culler.stopping import Outcome

PAGE = FILE.read_text(encoding="utf-8")


def test_the_page_is_written_anew() -> None:
    assert reference() == PAGE, "run: python -m services.idle_culler.reference"


@pytest.mark.parametrize("word", [*Reason, *Outcome])
def test_every_word_has_a_row_with_its_meaning(word: str) -> None:
    words = PAGE.partition("## Words for why")[2].splitlines()
    (row,) = (line for line in words if line.startswith(f"| `{word}` |"))
    assert row.split("|")[2].strip()


def test_every_reason_has_a_text() -> None:
    assert set(TEXTS) == set(Reason)


def test_every_key_is_explained() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    assert [row[1] for row in rows if not row[-2].strip()] == []
    assert all(f"| `{field.alias}` |" in PAGE for field in Settings.model_fields.values())


def test_every_metric_and_scope_has_a_row() -> None:
    registry = CollectorRegistry()
    CullerMetrics(registry)
    for family in registry.collect():
        assert f"| `{family.name}{'_total' if family.type == 'counter' else ''}` |" in PAGE
    assert all(f"| `{scope.name}` |" in PAGE for scope in RIGHTS.scopes)


def test_the_small_start_is_accepted_as_it_stands(tmp_path: Path) -> None:
    example = PAGE.partition("```yaml\n")[2].partition("```")[0]
    file = tmp_path / "culler.yaml"
    file.write_text(example)
    settings = read_settings(CullerSettings, file)
    assert settings.policy.mode is Mode.OBSERVE
    assert len(settings.policy.rules) == len(yaml.safe_load(example)["policy"]["rules"])
