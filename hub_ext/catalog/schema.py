"""JSON Schema of the catalog, for editors, and the questions that error messages ask it.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema

from .model import Catalog
from .problems import Loc

SCHEMA_ID: Final = "https://gpu-workspaces.jupyter.org/schema/catalog-v1.json"
EDITOR_LINE: Final = "# yaml-language-server: $schema="

Schema = Mapping[str, Any]


class _Generator(GenerateJsonSchema):
    """Leaves out the titles of keys, which only repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


@lru_cache(maxsize=1)
def json_schema() -> dict[str, Any]:
    """Give the schema as it is published; every object is closed, so editors mark misspelt keys."""
    schema = Catalog.model_json_schema(by_alias=True, mode="validation", schema_generator=_Generator)
    _close(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **schema,
        "title": "GPU workspaces catalog",
    }


def _close(node: Any) -> None:
    """Refuse keys that match no pattern, which pydantic checks and its schema does not say."""
    if isinstance(node, dict):
        if "patternProperties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            _close(value)
    elif isinstance(node, list):
        for value in node:
            _close(value)


def keys_at(loc: Loc, present: Mapping[str, Any] | None = None) -> dict[str, Schema]:
    """Give the keys that may stand in the mapping at a place, with the schema of each.

    Of several kinds of mapping those are left out that `present`, the mapping there, rules out.
    """
    keys: dict[str, Schema] = {}
    for schema in _at(loc):
        properties = schema.get("properties", {})
        if present is None or not _is_ruled_out(properties, present):
            keys.update(properties)
    return keys


def required_at(loc: Loc) -> list[str]:
    """Give the keys that must stand in the mapping at a place."""
    return list(dict.fromkeys(key for schema in _at(loc) for key in schema.get("required", ())))


def _is_ruled_out(properties: Mapping[str, Schema], present: Mapping[str, Any]) -> bool:
    return any(
        "const" in schema and key in present and present[key] != schema["const"]
        for key, schema in properties.items()
    )


def describe(loc: Loc) -> str:
    """Give the description of the value at a place, empty for none."""
    for schema in _at(loc[:-1]):
        found = schema.get("properties", {}).get(loc[-1] if loc else "")
        if found and found.get("description"):
            return _told(found)
    return next((_told(schema) for schema in _at(loc) if schema.get("description")), "")


def _told(schema: Schema) -> str:
    """Give the first paragraph of a description."""
    return str(schema["description"]).partition("\n\n")[0].replace("\n", " ")


def _at(loc: Loc) -> list[Schema]:
    """Give every schema that may apply at a place, all branches of a choice included."""
    schemas = list(_branches(json_schema()))
    for step in loc:
        below = [inner for schema in schemas for inner in _step(schema, step)]
        schemas = [branch for inner in below for branch in _branches(inner)]
    return schemas


def _step(schema: Schema, step: str | int) -> Iterator[Schema]:
    if isinstance(step, int):
        if isinstance(schema.get("items"), Mapping):
            yield schema["items"]
    elif step in schema.get("properties", {}):
        yield schema["properties"][step]
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield schema["additionalProperties"]
    elif "patternProperties" in schema and "properties" not in schema:
        yield from schema["patternProperties"].values()


def _branches(schema: Schema) -> Iterator[Schema]:
    """Follow references, and give each alternative by itself."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from _branches(json_schema()["$defs"][name])
        return
    yield schema
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(word, ()):
            yield from _branches(branch)
