"""The reference names every addon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.devcluster import addon
from tests.devcluster.spec import Addon

REFERENCE = Path(addon.__file__).with_name("REFERENCE.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", Addon)
def test_every_addon_is_explained(name: Addon) -> None:
    rows = [line for line in REFERENCE.splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in row.split("|")[1] for row in rows)


def test_every_addon_is_a_module() -> None:
    assert {loaded.addon for loaded in addon.load_addons(Addon)} == set(Addon)


def test_what_it_names_from_python_is_there() -> None:
    folder = Path(addon.__file__).parent
    code = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    for name in re.findall(r"`(\w+)\([^`]*\)`", REFERENCE):
        assert re.search(rf"(def|class) {name}\b", code), name
