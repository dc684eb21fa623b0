"""Mappings of name to text: labels, selectors, variables. KubeSpawner fills in fields in some of them.

Pure: no clock, no network.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..catalog.problems import Loc
from ..names import is_label_key, is_label_value
from .codes import Code, Findings

DROP: Final = object()
"""What a reader gives for a value that is left out; the reason is a finding."""
HUB_HELP: Final = "Set it for all servers in the hub's configuration, or leave it out."


def read_labels(value: Any, loc: Loc, findings: Findings) -> Any:
    """Read labels or a node selector; None for a key that is taken away."""
    return _texts(value, loc, findings, check=_label_problem)


def read_environment(value: Any, loc: Loc, findings: Findings) -> Any:
    """Read environment variables; None for one that is taken away."""
    return _texts(value, loc, findings, check=lambda _key, _text: "")


def read_annotations(value: Any, loc: Loc, findings: Findings) -> Any:
    """Read annotations; None for one that is taken away."""
    return _texts(value, loc, findings, check=lambda key, _: "" if is_label_key(key) else "not a key")


def _label_problem(key: str, text: str) -> str:
    if not is_label_key(key):
        return f"{key!r} is not a label key"
    return "" if is_label_value(text) else f"{text!r} is not a label value"


def _texts(value: Any, loc: Loc, findings: Findings, *, check: Callable[[str, str], str]) -> Any:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        findings.add(Code.WRONG_SHAPE, loc, f"a mapping of name to text, not {value!r}")
        return DROP
    result: dict[str, str | None] = {}
    for key, item in value.items():
        if item is None:
            result[key] = None
            continue
        text = _literal(item, (*loc, key), findings)
        if text is None:
            continue
        if problem := check(str(key), text):
            findings.add(Code.BAD_NAME, (*loc, key), problem)
            continue
        result[key] = text
    return result


def _literal(item: Any, loc: Loc, findings: Findings) -> str | None:
    """Give a text without fields that KubeSpawner would fill in; None if it has one or is no text."""
    if isinstance(item, bool | int | float):
        text = str(item).lower() if isinstance(item, bool) else str(item)
        findings.add(
            Code.WRONG_SHAPE, loc, f"{item!r} is not a text", help=f'Put quotes around it: "{text}".'
        )
        return text
    if not isinstance(item, str):
        findings.add(Code.NOT_CARRIED, loc, "the catalog takes plain texts only", help=HUB_HELP)
        return None
    if has_fields(item):
        message = f"{item!r} is filled in by KubeSpawner for each user, which the catalog does not do here"
        findings.add(Code.NOT_CARRIED, loc, message, help=HUB_HELP)
        return None
    return item.replace("{{", "{").replace("}}", "}")


def has_fields(text: str) -> bool:
    """Say whether KubeSpawner would fill something in: a brace that is not doubled."""
    return any(brace in text.replace(brace * 2, "") for brace in "{}")
