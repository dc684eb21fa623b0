"""What is wrong with a setting, in plain words, and what was probably meant.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from hub_ext.errors import BadValueError
from hub_ext.spelling import did_you_mean, known_here


def explain(kind: type[BaseModel], details: ErrorDetails) -> tuple[str, str]:
    """Give a sentence and a remedy for one fault that pydantic found in settings of a kind."""
    *parent, key = details["loc"] or ("",)
    own = details.get("ctx", {}).get("error")
    if isinstance(own, BadValueError):
        return own.message, own.help
    if details["type"] == "extra_forbidden":
        known = [*keys_at(kind, parent)]
        return f"there is no key {key!r} here", did_you_mean(str(key), known, known_here(known))
    if details["type"] == "missing":
        return f"{key} is missing", ""
    text = details["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:], ""


def keys_at(kind: type[BaseModel], loc: Sequence[int | str]) -> Iterator[str]:
    """Name the keys that settings of a kind may have at a place, as they are written."""
    models = [kind]
    for step in loc:
        models = [inner for model in models for inner in _inside(model, step)]
    for model in models:
        yield from (field.alias or name for name, field in model.model_fields.items())


def _inside(model: type[BaseModel], step: int | str) -> Iterator[type[BaseModel]]:
    """Give the models that a key of a model may hold; entries of its lists and mappings are no step down."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    yield from _models(fields[str(step)].annotation) if str(step) in fields else (model,)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
