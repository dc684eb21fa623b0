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
        {"defaults.session.idleTimeout": ""},
        {"images.base.ref": "r.io/base@sha256:abc"},
        {"images.torch.cuda": "latest"},
        {"profiles.0.displayName": " "},
        {"profiles.0.labels": {"a b": "c"}},
        {"profiles.0.labels": {"a": "b c"}},
        {"defaults.storage.home.mountPath": "/home/../etc"},
        {"defaults.storage.home.mountPath": "/home/jovyan/"},
        {"profiles.3.resources.gpu.count": 0.5},
        {"profiles.3.resources.gpu.count": ""},
        {"teams.nlp.quota.`limits.nvidia.com/gpu`": 4},
        {"aliases.llm": "gpu-full@newest"},
        {"profiles.0.price.perHour": "two"},
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


@pytest.mark.parametrize(
    "edit",
    [
        {"profiles.0.resources.memory": "+16Gi"},
        {"profiles.0.resources.memory": 1e10},
        {"profiles.0.resources.cpu": ".5"},
        {"profiles.3.resources.gpu.count": "1000m"},
        {"teams.nlp.quota.gpuEquivalents": "6.5"},
        {"teams.nlp.quota.`nvidia.com/gpu`": "4"},
        {"teams.nlp.quota.servers": "3"},
        {"pools.gpu-full.gpu.weight": "0.5"},
        {"profiles.0.price.perHour": "0.10"},
        {"profiles.0.labels": {"example.com/a": "", "b": "C_1"}},
        {"images.torch.pullSecrets": ["registry.example.com"]},
        {"aliases.llm": "gpu-full@3"},
    ],
)
def test_editors_accept_what_loads(
    validator: Draft202012Validator, clean: dict[str, Any], edit: Edit
) -> None:
    good = changed(clean, edit)
    assert examine(good).catalog is not None
    assert [error.message for error in validator.iter_errors(good)] == []
