"""What checks are, and what they say.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hub_ext.errors import Finding, Severity

from .scene import Scene

PAGE: Final = "services/preflight/REFERENCE.md"
"""Page with a section for each check, in the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(Finding):
    """A finding with what it was seen in, and where to read on."""

    evidence: str = ""
    """What the cluster or the values say, in their own words."""
    link: str = ""

    def as_dict(self) -> dict[str, str | int | None]:
        """Give the fields of a finding, and those of an observation."""
        # Not `super()`: a dataclass with slots is another class than the one that this method was written in.
        return {**Finding.as_dict(self), "evidence": self.evidence, "link": self.link}

    def __str__(self) -> str:
        evidence = f"\n    seen: {self.evidence}" if self.evidence else ""
        return f"{Finding.__str__(self)}{evidence}\n    more: {self.link}"


class Outcome(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"
    NOT_CHECKED = "not-checked"
    """Something that it needs was not given or may not be seen; which is no good news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that a check has to say; its code is that of the check."""

    message: str
    help: str
    evidence: str = ""
    path: str = ""
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One item of the launch checklist."""

    code: str
    title: str
    """What holds if it passes."""
    run: Callable[[Scene], Iterable[Problem]]
    kinds: tuple[str, ...] = ()
    """Kinds of objects that it cannot do without."""
    needs: tuple[str, ...] = ()
    """Of ``catalog``, ``values``, ``metrics``: what it cannot do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one check says about one scene."""

    check: Check
    outcome: Outcome
    observations: tuple[Observation, ...] = ()
    missing: tuple[str, ...] = ()
    """What was not given, for a check that could not be done."""


def judge(check: Check, scene: Scene) -> Result:
    """Do one check."""
    missing = [kind for kind in check.kinds if not scene.objects.seen(kind)]
    missing += [need for need in check.needs if getattr(scene, need) is None]
    if missing:
        return Result(check=check, outcome=Outcome.NOT_CHECKED, missing=tuple(missing))
    try:
        found = tuple(_observation(check, problem) for problem in check.run(scene))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # An object without what the API always has, as in a dump that was cut: one check is lost, not all.
        return Result(check=check, outcome=Outcome.NOT_CHECKED, missing=(f"whole objects ({error!r})",))
    severities = {one.severity for one in found}
    outcome = Outcome.PASSED
    if Severity.ERROR in severities:
        outcome = Outcome.FAILED
    elif Severity.WARNING in severities:
        outcome = Outcome.WARNED
    return Result(check=check, outcome=outcome, observations=found)


def _observation(check: Check, problem: Problem) -> Observation:
    return Observation(
        severity=problem.severity,
        code=check.code,
        message=problem.message,
        path=problem.path,
        help=problem.help,
        evidence=problem.evidence,
        link=f"{PAGE}#{check.code}",
    )
