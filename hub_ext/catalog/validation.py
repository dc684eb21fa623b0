"""Check the shape of a catalog and say in plain words what is wrong with it.

pydantic finds the faults; here each gets a code, a sentence, a remedy, and the place in the document.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..errors import BadValueError
from ..gpu.resources import is_accelerator
from ..spelling import did_you_mean, known_here
from .codes import Code
from .model import Catalog
from .problems import Loc, Problem, path_of
from .schema import describe, keys_at, required_at

RawText = Callable[[Loc], str | None]
"""Gives the text of a value as it stands in the file, None where there is no file."""


def validate(data: Mapping[str, Any], raw_text: RawText) -> tuple[Catalog | None, list[Problem]]:
    """Give the catalog, or what is wrong with its shape."""
    try:
        return Catalog.model_validate(data, by_alias=True, by_name=False), []
    except ValidationError as error:
        found: dict[tuple[str, Loc, str], Problem] = {}
        for details in error.errors(include_url=False):
            if details["type"] == "too_short" and details["input"]:
                continue  # pydantic counts the entries that are right; those that are wrong are told
            problem = _problem(details, data, raw_text)
            found.setdefault((problem.code, problem.loc, problem.message), problem)
        return None, list(found.values())


def _problem(details: ErrorDetails, data: Mapping[str, Any], raw_text: RawText) -> Problem:
    loc = _real_loc(details["loc"], data, is_missing=details["type"] == "missing")
    own = details.get("ctx", {}).get("error")
    if isinstance(own, BadValueError):
        return Problem(code=_code(own.code), message=own.message, loc=loc, help=own.help)
    if details["type"] in set(Code):
        message, remedy = details["msg"], details.get("ctx", {}).get("help", "")
        loc = (*loc, details["ctx"]["key"])
        if details["type"] == Code.UNKNOWN_KEY:
            return _unknown_key(loc, data, remedy)
        return Problem(code=Code(details["type"]), message=message, loc=loc, help=remedy)
    if details["type"] == "extra_forbidden":
        return _unknown_key(loc, data)
    if details["type"] == "missing":
        return Problem(code=Code.MISSING_KEY, message=f"{loc[-1]} is missing", loc=loc, help=describe(loc))
    return _wrong_value(details, loc, raw_text)


def _code(word: str) -> Code:
    return Code(word) if word in set(Code) else Code.BAD_VALUE


def _real_loc(loc: tuple[int | str, ...], data: Any, *, is_missing: bool) -> Loc:
    """Keep those steps that exist in the document: pydantic adds the names of types and of expansions."""
    real: list[int | str] = []
    node = data
    for index, step in enumerate(loc):
        if _has(node, step):
            node = node[step]
        elif not (is_missing and index == len(loc) - 1):
            continue
        real.append(step)
    return tuple(real)


def _has(node: Any, step: int | str) -> bool:
    if isinstance(node, Mapping):
        return step in node
    return isinstance(node, list) and isinstance(step, int) and step < len(node)


def _unknown_key(loc: Loc, data: Any, hint: str = "") -> Problem:
    """Say that a key is not known, and guess what was meant: a neighbor, or the same key elsewhere."""
    *parent, key = loc
    return Problem(
        code=Code.UNKNOWN_KEY,
        message=f"there is no key {key!r} here",
        loc=loc,
        help=_FROM_ELSEWHERE.get(str(key), "") or hint or _guess(str(key), tuple(parent), data),
    )


_FROM_ELSEWHERE: Final = {
    "kubespawner_override": "A profile list becomes a catalog by gpu-workspaces import.",
    "profile_options": "Write choices.",
    "unlisted_choice": "Write custom in the choice named image.",
    "allowed_groups": "Write access: {groups: […]}.",
    "slug": "Write name.",
    "default": "Write defaults: {profile: …} at the top, or default in the choice.",
    "requests": "Write cpu: {request: …, limit: …}, and memory likewise.",
    "limits": "Write cpu: {request: …, limit: …}, and memory likewise.",
    "nodeSelector": "It belongs to a pool, which resources name.",
    "tolerations": "They belong to a pool, which resources name.",
    "privileged": "Workspaces are never privileged.",
}
"""Words of KubeSpawner and of pods, and what stands for them here."""

_SYNONYMS: Final = {
    "mem": "memory",
    "min": "request",
    "max": "limit",
    "size": "sizeLimit",
    "storageClass": "class",
    "storageClassName": "class",
    "pvc": "claim",
    "claimName": "claim",
    "image": "images",
}
"""Words that mean a key where there is one of that name."""


def _guess(key: str, parent: Loc, data: Any) -> str:
    present = _value_at(data, parent)
    written = present if isinstance(present, Mapping) else {}
    here = keys_at(parent, written)
    if (meant := _SYNONYMS.get(key)) in here:
        return f"Write {meant}."
    free = [name for name in here if name not in written]
    if is_accelerator(key) and "gpu" in here:
        return "Write gpu: {pool: …, count: 1}; the pool says what a GPU is called."
    if question := did_you_mean(key, [*free, *here], alike=0.7):
        return question
    if below := [name for name in here if key in keys_at((*parent, name))]:
        return f"It belongs one level down, into {below[0]}."
    return _level_above(key, parent) or known_here(here)


def _level_above(key: str, parent: Loc) -> str:
    for length in range(len(parent) - 1, -1, -1):
        if key in keys_at(parent[:length]):
            where = path_of(parent[:length]) or "the top of the catalog"
            return f"It belongs further up, into {where}."
    return ""


def _value_at(data: Any, loc: Loc) -> Any:
    for step in loc:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


_KINDS: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "date_type": "a date",
}


def _wrong_value(details: ErrorDetails, loc: Loc, raw_text: RawText) -> Problem:
    kind, value = details["type"], details["input"]
    if kind in _KINDS:
        amount = str(details.get("ctx", {}).get("class_name", "")).endswith("Amount")
        return Problem(
            code=Code.WRONG_TYPE,
            message=f"expected {'an amount' if amount else _KINDS[kind]}, not {_shown(value)}",
            loc=loc,
            help=_type_help(kind, value, raw_text(loc))
            or " ".join(filter(None, (describe(loc), _keys(kind, loc)))),
        )
    context = details.get("ctx", {})
    if kind == "union_tag_invalid":
        loc = (*loc, str(context["discriminator"]).strip("'"))
    if kind in {"literal_error", "enum", "union_tag_invalid"}:
        expected = str(context.get("expected") or context.get("expected_tags"))
        word = context.get("tag", value)
        words = re.findall(r"'([^']+)'", expected)
        expected = ", ".join(words)
        return Problem(
            code=Code.BAD_VALUE,
            message=f"{_shown(word)} is not one of {expected}",
            loc=loc,
            help=did_you_mean(str(word), words),
        )
    if kind == "union_tag_not_found":
        key = str(context.get("discriminator", "")).strip("'")
        return Problem(
            code=Code.MISSING_KEY, message=f"{key} is missing", loc=(*loc, key), help=describe((*loc, key))
        )
    if kind.startswith("date"):
        return Problem(
            code=Code.BAD_VALUE,
            message=f"{_shown(value)} is not a date",
            loc=loc,
            help="Write year, month and day, such as 2027-03-31.",
        )
    return Problem(code=Code.BAD_VALUE, message=_out_of_bounds(details), loc=loc, help=describe(loc))


def _keys(kind: str, loc: Loc) -> str:
    """Show what a mapping looks like that must stand at a place."""
    keys = keys_at(loc) if kind.startswith("model_") else {}
    shown = ", ".join(f"{key}: …" for key in required_at(loc) or list(keys)[:4])
    return f"Write {{{shown}}}." if keys else ""


def _out_of_bounds(details: ErrorDetails) -> str:
    context, value = details.get("ctx", {}), _shown(details["input"])
    match details["type"]:
        case "too_short":
            return f"{details['loc'][-1]} is empty"
        case "greater_than_equal":
            return f"{value} is below {context['ge']}"
        case "less_than_equal":
            return f"{value} is above {context['le']}"
        case _:
            message = details["msg"].removeprefix("Value error, ")
            return message[:1].lower() + message[1:]


def _type_help(kind: str, value: Any, raw: str | None) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        text = raw if raw is not None else str(value).lower() if isinstance(value, bool) else str(value)
        return f'Put quotes around it: "{text}".'
    if kind == "bool_type" and isinstance(value, str):
        meant = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
        word = meant.get(value.lower(), value.lower())
        return f"Write {word}, without quotes." if word in {"true", "false"} else "Write true or false."
    if kind == "tuple_type" and isinstance(value, str):
        return f"Write [{value}]."
    if kind.startswith("int_") and (number := re.fullmatch(r"v?([0-9]{1,9})(?:\.0)?", str(value))):
        return f"Write {number[1]}, without quotes." if isinstance(value, str) else f"Write {number[1]}."
    if value is None:
        return "Give it a value, or leave out the key."
    return ""


def _shown(value: Any) -> str:
    """Show a value shortly; it may be of any size."""
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case bool():
            return str(value).lower()
        case _:
            text = repr(value)
            return text if len(text) <= 60 else f"{text[:57]}…"


def broken_entries(problems: list[Problem]) -> Iterator[Loc]:
    """Name the entries (`profiles[2]`, `pools.gpu`) that problems lie in; the rest can be checked further."""
    for problem in problems:
        yield problem.loc[:2] if problem.loc[:1] and problem.loc[0] in _SECTIONS else problem.loc[:1]


_SECTIONS: Final = {"images", "pools", "teams", "optionSets", "aliases", "profiles"}
