"""Teams and quotas: teams have members, and quotas bound what may be started.

Source: Kubernetes ResourceQuota counts each extended resource by its own name; nothing makes a MIG slice or a
share count as a GPU.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ...gpu.mig import is_mig_profile
from ..codes import Code
from ..gpus import equivalents, grant, resources_of
from ..model import MigGpu, Profile, Quota, State
from ..problems import Loc, Problem
from .context import Context, Variant, suggestion


def check_members(context: Context) -> Iterator[Problem]:
    """A team that nobody is in."""
    for name, team in context.written.teams.items():
        if not team.groups and not team.users:
            yield Problem(
                code=Code.TEAM_EMPTY,
                message=f"nobody is in {name!r}",
                loc=("teams", name),
                help="Name groups of the hub, or users.",
            )


RESERVED: Final = frozenset({"default", "gpu-operator", "kueue-system"})
"""Namespaces of Kubernetes and of operators that work with this bundle; beside them, all of `kube-…`."""


def is_clusters_own(namespace: str) -> bool:
    """Say whether pods of the cluster itself are in a namespace."""
    return namespace in RESERVED or namespace.startswith("kube-")


def check_namespaces(context: Context) -> Iterator[Problem]:
    """A hub may delete pods and claims in namespaces of teams."""
    for name, team in context.written.teams.items():
        namespace = team.namespace or ""
        if is_clusters_own(namespace):
            yield Problem(
                code=Code.TEAM_NAMESPACE_RESERVED,
                message=f"{namespace} is the cluster's own; the hub would have rights over what runs there",
                loc=("teams", name, "namespace"),
                help=f"Write a namespace that is the team's alone, such as ws-{name}.",
            )


def check_quotas(context: Context) -> Iterator[Problem]:
    """GPUs that a quota forgets, and profiles that can never fit."""
    everything = [p for _, p in context.profiles() if p.state is not State.RETIRED]
    bounds: list[tuple[Loc, str, Quota, list[Profile]]] = [
        (("quota",), "users", context.written.quota, everything)
    ]
    for name, team in context.written.teams.items():
        profiles = [p for p in everything if _may_start(name, p)]
        for key, quota in (("quota", team.quota), ("perUser", team.per_user)):
            bounds.append((("teams", name, key), name, quota, profiles))
    for loc, who, quota, profiles in bounds:
        yield from _idle(context, loc, quota)
        yield from _gaps(context, loc, who, quota, profiles)
        yield from _too_small(context, loc, quota, profiles)


def _may_start(team: str, profile: Profile) -> bool:
    access = profile.access
    return access is None or access.everyone or team in access.teams


def _idle(context: Context, loc: Loc, quota: Quota) -> Iterator[Problem]:
    """A bound on what no pool offers counts nothing, most often because of a misspelt name."""
    if "pools" in context.left_out:
        return
    pools = context.written.pools.values()
    offered = frozenset(name for pool in pools if pool.gpu is not None for name in resources_of(pool.gpu))
    for key in quota.extended:
        if key not in offered:
            yield Problem(
                code=Code.QUOTA_IDLE,
                message=f"no pool offers {key}, so this bounds nothing",
                loc=(*loc, key),
                help=suggestion(key, offered),
            )


def _gaps(context: Context, loc: Loc, who: str, quota: Quota, profiles: list[Profile]) -> Iterator[Problem]:
    bounded = quota.extended
    if not bounded or quota.gpu_equivalents is not None:
        return
    reachable = dict.fromkeys(
        need.resource
        for profile in profiles
        for variant in context.variants(profile)
        if (need := _need(context, variant)) is not None
    )
    missing = [resource for resource in reachable if resource not in bounded]
    if missing:
        yield Problem(
            code=Code.QUOTA_GAP,
            message=f"{who} may start {', '.join(missing)}, which {loc[-1]} does not bound",
            loc=loc,
            help="Add each by name, or bound all by gpuEquivalents.",
        )


def _too_small(context: Context, loc: Loc, quota: Quota, profiles: list[Profile]) -> Iterator[Problem]:
    if not quota.model_fields_set:
        return
    for profile in profiles:
        exceeded = [_exceeded(context, quota, variant) for variant in context.variants(profile)]
        if exceeded and all(exceeded):
            yield Problem(
                code=Code.QUOTA_TOO_SMALL,
                message=f"{profile.label} needs more {exceeded[0]} than is allowed",
                loc=loc,
                help="Raise the quota, or take those whom it bounds out of the profile's access.",
            )


def _exceeded(context: Context, quota: Quota, variant: Variant) -> str:
    """Name the first thing of which one workspace needs more than the quota; empty for none."""
    resources = variant.resources
    if quota.cpu is not None and resources.cpu.request > quota.cpu:
        return "cpu"
    if quota.memory is not None and resources.memory.request > quota.memory:
        return "memory"
    need = _need(context, variant)
    if need is None:
        return ""
    if need.count > quota.extended.get(need.resource, need.count):
        return need.resource
    if quota.gpu_equivalents is not None and need.worth > Fraction(quota.gpu_equivalents):
        return "gpuEquivalents"
    return ""


@dataclass(frozen=True, slots=True)
class _Need:
    resource: str
    count: int
    worth: Fraction


def _need(context: Context, variant: Variant) -> _Need | None:
    request = variant.resources.gpu
    pool = context.catalog.pools.get(request.pool) if request else None
    if request is None or pool is None or pool.gpu is None:
        return None
    asked = grant(pool.gpu, request)
    if isinstance(pool.gpu, MigGpu) and not is_mig_profile(asked.slice_name):
        return None
    return _Need(asked.resource, asked.count, equivalents(pool.gpu, asked.slice_name, asked.count))
