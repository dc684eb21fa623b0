"""The page about the command names every verb, target and code, in the words of the source."""

from pathlib import Path

import pytest

from hub_ext.cli.app import VERBS
from hub_ext.cli.render import TARGETS
from hub_ext.importer import codes
from hub_ext.render.target import Code

PAGE = (Path(__file__).parents[3] / "hub_ext" / "cli" / "REFERENCE.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_have_a_section(verb):
    assert f"\n## {verb}\n" in PAGE


@pytest.mark.parametrize("target", TARGETS)
def test_targets_have_a_row(target):
    assert f"\n| `{target}` | " in PAGE


@pytest.mark.parametrize("code", Code)
def test_codes_of_rendering_have_a_row(code):
    assert f"\n| `{code}` | " in PAGE


@pytest.mark.parametrize("code", codes.Code)
def test_codes_of_an_import_have_a_row_with_severity_and_meaning(code):
    assert f"\n| `{code}` | {code.severity} | {code.meaning} |\n" in PAGE
