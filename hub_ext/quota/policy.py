"""Limits per user, per team and for all, and the verdict on one more workspace.

A limit may name servers, processors, memory, GPU equivalents and any extended resource. Running, pending and
starting workspaces and the jobs made from them take room; what has finished does not.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..catalog.model import Catalog, Quota
from . import texts
from .arithmetic import CPU, GPU_EQUIVALENTS, MEMORY, SERVERS, Amount, Resources
from .usage import Usage
from .verdicts import Fault, Reason, Refusal, Scope, Shortage

_REASONS = {
    Scope.USER: Reason.USER_LIMIT,
    Scope.TEAM: Reason.TEAM_LIMIT,
    Scope.CLUSTER: Reason.CLUSTER_LIMIT,
    Scope.NAMESPACE: Reason.NAMESPACE_QUOTA,
}


_SCOPES = {reason: scope for scope, reason in _REASONS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An upper bound for one user, one team or all; what it does not name is not bounded."""

    scope: Scope
    bound: Mapping[str, Amount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many more of one workspace fit; None where nothing bounds them."""

    user: int | None
    team: int | None
    cluster: int | None

    @property
    def least(self) -> int | None:
        known = [n for n in (self.user, self.team, self.cluster) if n is not None]
        return min(known) if known else None


def bound_of(quota: Quota) -> dict[str, Amount]:
    """Read a quota of the catalog into the units of `arithmetic`."""
    named: dict[str, Amount | None] = {
        SERVERS: quota.servers,
        CPU: quota.cpu,
        MEMORY: quota.memory,
        GPU_EQUIVALENTS: None if quota.gpu_equivalents is None else Fraction(quota.gpu_equivalents),
        **quota.extended,
    }
    return {name: amount for name, amount in named.items() if amount is not None}


def limits_for(catalog: Catalog, team: str) -> tuple[Limit, ...]:
    """Collect the limits that apply to a member of `team`, the narrowest first.

    A team that the catalog does not know has no limits of its own: whether its members may start anything is
    decided before, by access.
    """
    found = catalog.teams.get(team)
    quotas = [] if found is None else [(Scope.USER, found.per_user), (Scope.TEAM, found.quota)]
    quotas.append((Scope.CLUSTER, catalog.quota))
    limits = (Limit(scope=scope, bound=bound_of(quota)) for scope, quota in quotas)
    return tuple(limit for limit in limits if limit.bound)


def check(
    asked: Resources,
    usage: Usage,
    limits: Sequence[Limit],
    *,
    containers: Mapping[str, Resources] | None = None,
) -> Refusal | None:
    """Judge one more workspace; None means that it may start.

    Parameters
    ----------
    asked
        What it takes, with ``servers`` and ``gpuEquivalents`` in it.
    usage
        What is taken already, without the workspace itself.
    limits
        The first one that is exceeded is the one that is reported.
    containers
        What each container of the pod asks for: if several ask for what is short, the text names them.
    """
    for limit in limits:
        shortages = short_of(asked, usage.within(limit.scope), limit.bound)
        if shortages:
            return Refusal(
                reason=_REASONS[limit.scope],
                text=f"{texts.over_limit(limit.scope, shortages)}{_takers(shortages, containers or {})}",
                fault=Fault.USER,
                shortages=shortages,
            )
    return None


def _takers(shortages: Sequence[Shortage], containers: Mapping[str, Resources]) -> str:
    for shortage in shortages:
        names = [name for name, taken in containers.items() if shortage.resource in taken]
        if "/" in shortage.resource and len(names) > 1:
            return f" {texts.takers(shortage.resource, names)}"
    return ""


def with_fits(refusal: Refusal, fits: Sequence[str]) -> Refusal:
    """Name the workspaces that would fit instead; a refusal that is not about a limit stays as it is."""
    scope = _SCOPES.get(refusal.reason)
    if scope is None or not refusal.shortages or not fits:
        return refusal
    plain = texts.over_limit(scope, refusal.shortages)
    named = texts.over_limit(scope, refusal.shortages, fits)
    return replace(refusal, text=refusal.text.replace(plain, named, 1), fits=tuple(fits))


def short_of(asked: Resources, used: Resources, bound: Mapping[str, Amount]) -> tuple[Shortage, ...]:
    """List what does not fit; a resource that is not asked for is never short, however much is in use."""
    return tuple(
        Shortage(resource=name, asked=asked[name], used=used[name], limit=most)
        for name, most in bound.items()
        if asked[name] > 0 and used[name] + asked[name] > most
    )


def room(asked: Resources, usage: Usage, limits: Sequence[Limit]) -> Room:
    """Count how many more like `asked` fit, per scope."""
    counts: dict[Scope, int] = {}
    for limit in limits:
        used = usage.within(limit.scope)
        more = [
            max(0, int((most - used[name]) // asked[name]))
            for name, most in limit.bound.items()
            if asked[name] > 0
        ]
        if more:
            counts[limit.scope] = min(more)
    return Room(user=counts.get(Scope.USER), team=counts.get(Scope.TEAM), cluster=counts.get(Scope.CLUSTER))
