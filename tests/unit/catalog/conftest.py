"""A catalog with nothing to say against it, and ways to change it."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hub_ext.catalog.load import examine
from hub_ext.catalog.source import read_text
from hub_ext.errors import Finding

GONE = "<gone>"
"""As a value: the key is taken out."""

Edit = Mapping[str, Any]
"""New values by place: ``profiles.0.resources.cpu``; the last step may be new."""


def steps(place: str) -> list[str | int]:
    """Read a place; a step in backquotes may hold dots."""
    parts: list[str | int] = []
    for index, piece in enumerate(place.split("`")):
        if index % 2:
            parts.append(piece)
        else:
            parts += [int(step) if step.isdigit() else step for step in piece.split(".") if step]
    return parts


def changed(catalog: Mapping[str, Any], edit: Edit) -> dict[str, Any]:
    """Give a copy with some values put in place of others."""
    copy: Any = deepcopy(dict(catalog))
    for place, value in edit.items():
        *way, last = steps(place)
        node = copy
        for step in way:
            node = node[step] if isinstance(step, int) else node.setdefault(step, {})
        if value == GONE:
            del node[last]
        elif isinstance(node, list) and last == len(node):
            node.append(value)
        else:
            node[last] = value
    return copy


@pytest.fixture(scope="session")
def clean_file() -> Path:
    return Path(__file__).parent / "clean.yaml"


@pytest.fixture(scope="session")
def clean(clean_file: Path) -> dict[str, Any]:
    (document,) = read_text(clean_file.read_text(encoding="utf-8"))
    data: dict[str, Any] = document.data
    return data


@pytest.fixture
def findings(clean: dict[str, Any]) -> Callable[[Edit], tuple[Finding, ...]]:
    """Give what is said about the clean catalog after an edit."""
    return lambda edit: examine(changed(clean, edit)).findings
