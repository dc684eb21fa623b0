"""The catalog's limits for runs: the same ledger, rules and sentences as for workspaces.

Kueue holds a team to its quota. What one member, and all users together, may have at once Kueue does not
know: a run that would go beyond it is held by a gate until there is room, and refused only if there never can
be.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hub_ext.names import DOMAIN
from hub_ext.quota.arithmetic import NOTHING, Resources
from hub_ext.quota.policy import Limit, check, short_of
from hub_ext.quota.usage import Holding, Owner, Usage, share_of
from hub_ext.quota.verdicts import Refusal, Scope

from .texts import of_run

GATE: Final = f"{DOMAIN}/limit"
"""Name of the gate."""
GATE_ANNOTATION: Final = "kueue.x-k8s.io/admission-gated-by"
_OURS: Final = (Scope.USER, Scope.CLUSTER)
"""Scopes that Kueue does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitVerdict:
    """What the limits say to one more run."""

    held: bool = False
    refusal: Refusal | None = None
    """Why it is held, or why it can never run."""

    @property
    def never(self) -> bool:
        return self.refusal is not None and not self.held


def usage_of(holdings: Iterable[Holding], owner: Owner) -> Usage:
    """Add up what counts for an owner."""
    total = Usage(user=NOTHING, team=NOTHING, cluster=NOTHING)
    for holding in holdings:
        total = total + share_of(holding, owner)
    return total


def judge_limits(asked: Resources, usage: Usage, limits: Sequence[Limit]) -> LimitVerdict:
    """Judge one more run."""
    for limit in limits:
        worst = short_of(asked, usage.within(limit.scope), limit.bound)
        never = any(short.never_fits for short in worst)
        if worst and (never or limit.scope in _OURS):
            refusal = check(asked, usage, [limit])
            told = replace(refusal, text=of_run(refusal.text)) if refusal else None
            return LimitVerdict(held=not never, refusal=told)
    return LimitVerdict()


def openable(
    held: Sequence[tuple[str, Holding]], holdings: Sequence[Holding], limits: Sequence[Sequence[Limit]]
) -> tuple[str, ...]:
    """Name the held runs that fit now, the first of each owner first; each that goes counts for the next.

    Parameters
    ----------
    held
        Name and demand of each held run, oldest first.
    limits
        For each of them.
    """
    taken = list(holdings)
    opened: list[str] = []
    waiting: set[Owner] = set()
    for (name, holding), bound in zip(held, limits, strict=True):
        if holding.owner in waiting:
            continue
        verdict = judge_limits(holding.taken, usage_of(taken, holding.owner), bound)
        if verdict.refusal is None:
            opened.append(name)
            taken.append(holding)
        else:
            waiting.add(holding.owner)
    return tuple(opened)
