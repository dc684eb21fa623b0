"""The agent's page names every variable, word and request, in the words of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub_ext.protocol import URL_ENV, Attribution, Origin
from services.workspace_agent import LAB_EXTENSION, wheel
from services.workspace_agent.handlers import routes
from services.workspace_agent.jobs import URL_ENV as HANDOFF_ENV
from services.workspace_agent.view import EVENT, build_view

PAGE = (Path(wheel.__file__).parent / "REFERENCE.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [URL_ENV, HANDOFF_ENV, *Attribution])
def test_settings_and_results_have_a_row(name: str) -> None:
    assert f"\n| `{name}` | " in PAGE


@pytest.mark.parametrize("url", [url for url, _ in routes("/")])
def test_requests_have_a_row(url: str) -> None:
    assert f"{url.removeprefix('/')}`" in PAGE


@pytest.mark.parametrize("word", [*Origin, LAB_EXTENSION, wheel.NAME, EVENT])
def test_words_are_explained(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_the_view_is_explained() -> None:
    view = build_view(
        answer=None, answer_age_seconds=None, problem=None, report=None, save=None, handoff=False
    )
    assert all(f"`{key}`" in PAGE for key in view)
