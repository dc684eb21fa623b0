"""Which objects a list or a watch asks for.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_SET: Final = re.compile(r"(?P<key>\S+)\s+(?P<how>in|notin)\s+\((?P<values>[^)]*)\)")
_IGNORED: Final = {"limit", "continue", "timeoutSeconds", "resourceVersion"}


def matches(item: Mapping[str, Any], namespace: str, params: Mapping[str, str]) -> bool:
    """Say whether an object is in this namespace, or in any for "", and selected."""
    unknown = set(params) - {"labelSelector", "fieldSelector"} - _IGNORED
    if unknown:
        raise NotImplementedError(f"{sorted(unknown)} cannot be imitated")
    metadata = item["metadata"]
    labels = metadata.get("labels") or {}
    return (
        (not namespace or metadata.get("namespace") == namespace)
        and all(_label(labels, part) for part in _parts(params.get("labelSelector", "")))
        and all(_field(item, part) for part in _parts(params.get("fieldSelector", "")))
    )


def _parts(selector: str) -> list[str]:
    """Split at commas that are not inside parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", selector) if part.strip()]


def _label(labels: Mapping[str, str], part: str) -> bool:
    if match := _SET.fullmatch(part):
        values = {value.strip() for value in match["values"].split(",")}
        return (labels.get(match["key"]) in values) is (match["how"] == "in")
    if "!=" in part:
        key, _, value = part.partition("!=")
        return labels.get(key.strip()) != value.strip()
    if "=" in part:
        key, _, value = part.replace("==", "=").partition("=")
        return labels.get(key.strip()) == value.strip()
    return (part.removeprefix("!") in labels) is not part.startswith("!")


def _field(item: Mapping[str, Any], part: str) -> bool:
    match = re.fullmatch(r"(?P<path>[A-Za-z.]+)(?P<how>!=|==|=)(?P<value>.*)", part)
    if match is None:
        raise NotImplementedError(f"field selector {part!r}")
    value: Any = item
    for step in match["path"].split("."):
        value = (value or {}).get(step)
    return (str(value or "") == match["value"]) is (match["how"] != "!=")
