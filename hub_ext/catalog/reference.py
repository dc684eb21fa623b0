"""Write the reference page of the catalog from the models, so that it cannot go stale.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..gpu.mig import max_count
from ..gpu.products import CARDS
from .codes import Code
from .schema import EDITOR_LINE, json_schema

SCHEMA_FILE: Final = "schema.json"
_HEAD: Final = f"""\
<!-- Written by `python -m hub_ext.catalog.publish`; do not edit. -->

# Catalog reference

A catalog is YAML: one file, a folder of files, or `custom.gpuWorkspaces` in the values of the JupyterHub
chart. For completion and checks while typing, let the first line of a file be

```yaml
{EDITOR_LINE}{SCHEMA_FILE}
```

with the path or address of [`{SCHEMA_FILE}`]({SCHEMA_FILE}). Unknown keys are errors. Keys are `camelCase`.
Quantities are Kubernetes' own (`16Gi`, `500m`), durations are `90m`, `12h`, `1d`.

"""
Schema = Mapping[str, Any]


def reference() -> str:
    """Give the page as Markdown."""
    sections = [_HEAD, "## Keys\n\n"]
    sections += [_section(name, schema) for name, schema in _models()]
    sections += ["## Findings\n\n", *_findings(), "\n## Slices of cards (MIG)\n\n", *_cards()]
    return "".join(sections)


def _models() -> Iterator[tuple[str, Schema]]:
    """Give the models in the order in which a reader meets them."""
    root = json_schema()
    yield "Catalog", root
    seen: list[str] = []
    todo = list(_refs(root["properties"]))
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.append(name)
        schema = root["$defs"][name]
        schema = next((part for part in schema.get("anyOf", ()) if "properties" in part), schema)
        if "properties" in schema:
            yield name, schema
            todo = [*_refs(schema["properties"]), *todo]


def _refs(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield str(node["$ref"]).removeprefix("#/$defs/")
        for value in node.values():
            yield from _refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from _refs(value)


def _section(name: str, schema: Schema) -> str:
    text = str(schema.get("description", "")).strip()
    lines = [f"### {name}", "", text, "", "| key | value | default | meaning |", "|---|---|---|---|"]
    required = set(schema.get("required", ()))
    lines += [_row(key, field, required=key in required) for key, field in schema["properties"].items()]
    if "patternProperties" in schema:
        lines.append(
            "| `nvidia.com/gpu`, … | whole number |  | Bound on an extended resource, by its plain name. |"
        )
    return "\n".join(lines) + "\n\n"


def _row(key: str, field: Schema, *, required: bool) -> str:
    default = "**required**" if required else _default(field)
    meaning = _cell(str(field.get("description", "")) or _described(field))
    return f"| `{key}` | {_cell(_type(field))} | {default} | {meaning} |"


def _described(field: Schema) -> str:
    """Give the first sentence of the model that a field holds."""
    for name in _refs(field):
        text = str(json_schema()["$defs"][name].get("description", ""))
        return text.partition("\n")[0]
    return ""


_QUANTITIES: Final[Mapping[tuple[str, ...], str]] = {
    ("text", "number"): "quantity",
    ("text", "whole number"): "whole number",
}
"""What values are that may be written as a number or as a text."""


def _type(field: Schema) -> str:
    if "$ref" in field:
        return _named(str(field["$ref"]).removeprefix("#/$defs/"))
    if "const" in field or "enum" in field:
        return " or ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if parts := [*field.get("anyOf", ()), *field.get("oneOf", ())]:
        words = dict.fromkeys(_type(part) for part in parts if part.get("type") != "null")
        return _QUANTITIES.get(tuple(words), " or ".join(words))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if field.get("type") == "object":
        values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties") or {}]
        return f"mapping to {_type(values[0])}"
    return _SINGLE.get(str(field.get("type", "")), "text")


def _named(name: str) -> str:
    """Link to a model; one that may be written as a plain value says that too."""
    target = json_schema()["$defs"][name]
    if "enum" in target:
        return _type(target)
    short = [_type(part) for part in target.get("anyOf", ()) if "properties" not in part]
    return " or ".join([*short, f"[{name}](#{name.lower()})"])


_SINGLE: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
}


def _default(field: Schema) -> str:
    value = field.get("default")
    if value in (None, "", [], {}) or isinstance(value, Mapping):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def _findings() -> Iterator[str]:
    yield "| code | severity | meaning |\n|---|---|---|\n"
    for code in Code:
        yield f"| `{code}` | {code.severity} | {_cell(code.meaning)} |\n"


def _cards() -> Iterator[str]:
    yield "| card | profiles, and how many of each fit on one card |\n|---|---|\n"
    for card in CARDS:
        if card.mig is not None:
            sizes = ", ".join(f"{name} ({max_count(card.mig, name)})" for name in card.mig.names)
            yield f"| {card.name} | {sizes} |\n"
    without = ", ".join(card.name for card in CARDS if card.mig is None and not card.mig_unknown)
    yield f"\nNot cut by MIG: {without}.\n"
