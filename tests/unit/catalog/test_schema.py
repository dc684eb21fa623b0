"""The published schema and reference page."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hub_ext.catalog.codes import Code
from hub_ext.catalog.load import examine
from hub_ext.catalog.publish import published
from hub_ext.catalog.schema import describe, json_schema, keys_at

from .conftest import Edit, changed


@pytest.mark.parametrize("path", published(), ids=lambda path: path.name)
def test_what_is_published_is_what_the_models_say(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == published()[path], "run python -m hub_ext.catalog.publish"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(json_schema())
    return Draft202012Validator(json_schema())


def test_editors_accept_the_clean_catalog(validator: Draft202012Validator, clean: dict[str, Any]) -> None:
    assert [error.message for error in validator.iter_errors(clean)] == []


@pytest.mark.parametrize(
    "edit",
    [
        {"profiles.0.imagse": []},
        {"profiles.0.version": "1"},
        {"pools.gpu-full.gpu.sharing": "none"},
        {"pools.gpu-full.gpu.geometry": {}},
        {"images.A B": {"ref": "x", "displayName": "X"}},
        {"teams.nlp.quota.serves": 3},
        {"profiles.0.resources.memory": "8GB"},
        {"defaults.session.idleTimeout": 90},
    ],
)
def test_editors_mark_what_does_not_load(
    validator: Draft202012Validator, clean: dict[str, Any], edit: Edit
) -> None:
    bad = changed(clean, edit)
    assert examine(bad).catalog is None
    assert list(validator.iter_errors(bad))


def test_every_key_is_described() -> None:
    places: list[tuple[str | int, ...]] = [
        (),
        ("images", "x"),
        ("pools", "x"),
        ("pools", "x", "gpu"),
        ("teams", "x"),
        ("defaults",),
        ("profiles", 0),
        ("profiles", 0, "storage"),
        ("profiles", 0, "choices", "x"),
    ]
    for place in places:
        keys = keys_at(place)
        assert keys
        if place:
            assert [key for key in keys if not (describe((*place, key)) or "$ref" in str(keys[key]))] == []


def test_the_reference_names_every_finding() -> None:
    (page,) = [text for path, text in published().items() if path.suffix == ".md"]
    assert [code for code in Code if f"| `{code}` |" not in page] == []
