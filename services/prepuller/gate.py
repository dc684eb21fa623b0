"""The release gate: whether enough nodes of a pool are warm to let users come.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Any

from .reasons import NEEDS_ADMIN, TEXTS, Reason
from .summary import ALL_IMAGES


class Outcome(StrEnum):
    """What the gate says."""

    READY = "ready"
    WAITING = "waiting"
    """It may still come."""
    FAILED = "failed"
    """It will not come by waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What has to be warm."""

    least: float
    """Share of the nodes on which each image has to be, from 0 to 1."""
    pool: str = ""
    """Empty means all pools."""
    profile: str = ""
    """Name or label (`gpu-full@3`); empty means all."""
    catalog: str = ""
    """Mark of the catalog that is released (`wants.mark_of`); empty means whichever the service has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer, with a line for each image that it hangs on."""

    outcome: Outcome
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        return {
            "outcome": self.outcome.value,
            "missing": list(self.lines),
            "warnings": list(self.warnings),
        }


def judge(status: Mapping[str, Any], question: Question) -> Verdict:
    """Judge a status as `Summary.as_dict` writes it: the service and the command see the same.

    Nodes that take nothing now are not waited for, only named: one full or broken node must not keep a
    release from a hundred others. What the service does not know may be in the catalog that it is about to
    take over.
    """
    if question.catalog not in {"", status.get("catalog")}:
        return Verdict(outcome=Outcome.WAITING, lines=("the service has not taken over this catalog yet",))
    required = [one for one in status["images"] if one["required"]]
    asked = [one for one in required if _is_asked(one, question)]
    if not asked:
        return Verdict(outcome=Outcome.WAITING, lines=(_unknown(required, question),))
    missing = [one for one in asked if one["warm"] < ceil(round(question.least * _able(one), 9))]
    empty = [one for one in asked if _able(one) == 0]
    warnings = tuple(_warnings(asked, status))
    if not missing and len(empty) < len(asked):
        return Verdict(outcome=Outcome.READY, warnings=warnings)
    fatal = {one["subject"]: one for one in status["problems"] if Reason(one["reason"]) in NEEDS_ADMIN}
    lines = tuple(_line(one, fatal) for one in missing or empty)
    stuck = any(one["image"] in fatal or ALL_IMAGES in fatal for one in missing)
    return Verdict(outcome=Outcome.FAILED if stuck else Outcome.WAITING, lines=lines, warnings=warnings)


def _able(image: Mapping[str, Any]) -> int:
    """Count the nodes that could have the image by now."""
    return int(image["nodes"]) - int(image["blocked"])


def _is_asked(image: Mapping[str, Any], question: Question) -> bool:
    names = set(image["profiles"]) | {label.partition("@")[0] for label in image["profiles"]}
    return question.pool in {"", image["pool"]} and question.profile in {"", *names}


def _unknown(required: list[Any], question: Question) -> str:
    """Say what of a question is not known, and what is."""
    pools = dict.fromkeys(one["pool"] for one in required)
    profiles = dict.fromkeys(label for one in required for label in one["profiles"])
    asked = " in ".join(filter(None, (question.profile, question.pool))) or "anything"
    known = ", ".join(filter(None, (*profiles, *pools))) or "nothing"
    return f"the service's catalog wants no image of {asked}; it has {known}"


def _line(image: Mapping[str, Any], fatal: Mapping[str, Mapping[str, Any]]) -> str:
    place = f" in {image['pool']}" if image["pool"] else ""
    problem = fatal.get(image["image"]) or fatal.get(ALL_IMAGES)
    why = f": {problem['reason']}. {TEXTS[Reason(problem['reason'])]}" if problem else ""
    return f"{image['image']}{place}: warm on {image['warm']} of {_able(image)} nodes{why}"


def _warnings(asked: list[Any], status: Mapping[str, Any]) -> Iterator[str]:
    away = {one["pool"]: one["away"] for one in asked if one["away"]}
    for pool, number in away.items():
        yield f"{number} nodes of {pool or 'the hub'} take nothing now and were not counted"
    for one in status["problems"]:
        if Reason(one["reason"]) not in NEEDS_ADMIN:
            yield f"{one['subject']}: {one['reason']} on {one['node']}. {TEXTS[Reason(one['reason'])]}"
