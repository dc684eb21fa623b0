"""What a LimitRange of a namespace does not permit, in words: as the API server says it, and before it does.

Source: Kubernetes 1.36 `plugin/pkg/admission/limitranger` (`minConstraint`, `maxConstraint`,
`maxRequestConstraint`, `limitRequestRatioConstraint`).

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .arithmetic import read_amount
from .words import amount, figure, named

SIZE: Final = re.compile(
    r"(?P<side>minimum|maximum) (?P<name>\S+) usage per (?P<of>\w+) is (?P<bound>\w+)"
    r"(?:, but (?:limit|request) is (?P<has>\w+)|\.\s+No (?P<missing>limit|request) is specified)"
)
RATIO: Final = re.compile(
    r"(?P<name>\S+) max limit to request ratio per (?P<of>\w+) is (?P<bound>\w+), "
    r"but (?:provided ratio is (?P<has>[0-9.]+)|no (?P<missing>\w+) is specified)"
)
_OF: Final = {"Container": " per container", "PersistentVolumeClaim": " per volume"}
"""What a bound is for; one for the pod is one for the workspace."""


def in_words(message: str) -> str:
    """Say what a message of the API server objects to; empty for one that is not of this kind.

    Raises
    ------
    QuantityError
        A number in it is not a quantity.
    """
    found = [*(_size(match) for match in SIZE.finditer(message)), *map(_ratio, RATIO.finditer(message))]
    return "; ".join(dict.fromkeys(found))


def foreseen(spec: Mapping[str, Any], limit_ranges: Iterable[Mapping[str, Any]]) -> str:
    """Say in the same words which sizes of a pod are not permitted; empty for none.

    `spec` has the defaults of the ranges already. What is not stated at all is left to the API server.

    Raises
    ------
    QuantityError
        A size is not a quantity.
    """
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    items = (item for one in limit_ranges for item in (one.get("spec") or {}).get("limits") or ())
    found = (
        text
        for item in items
        if item.get("type") == "Container"
        for container in containers
        for text in _outside(container.get("resources") or {}, item)
    )
    return "; ".join(dict.fromkeys(found))


def _outside(resources: Mapping[str, Any], item: Mapping[str, Any]) -> Iterator[str]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, most in (item.get("max") or {}).items():
        has, bound = limits.get(name), read_amount(name, most)
        if has is not None and read_amount(name, has) > bound:
            yield _worded("at most", name, bound, read_amount(name, has))
    for name, least in (item.get("min") or {}).items():
        has, bound = requests.get(name), read_amount(name, least)
        if has is not None and read_amount(name, has) < bound:
            yield _worded("at least", name, bound, read_amount(name, has))


def _worded(side: str, name: str, bound: int, has: int) -> str:
    return f"{side} {amount(name, bound)}{_OF['Container']}, and it has {figure(name, has)}"


def _size(match: re.Match[str]) -> str:
    name = match["name"]
    side = "at most" if match["side"] == "maximum" else "at least"
    bound = amount(name, read_amount(name, match["bound"]))
    has = match["has"] and f"has {figure(name, read_amount(name, match['has']))}"
    return f"{side} {bound}{_OF.get(match['of'], '')}, and it {has or _lacks(match)}"


def _ratio(match: re.Match[str]) -> str:
    has = match["has"] and f"has {float(match['has']):g} times"
    rule = f"a limit of {named(match['name'])} of at most {match['bound']} times the request"
    return f"{rule}{_OF.get(match['of'], '')}, and it {has or _lacks(match)}"


def _lacks(match: re.Match[str]) -> str:
    return f"states no {match['missing']}"
