"""What a team may use at once, worked out for targets that count each resource by itself.

The catalog bounds resources by name and all GPUs together by their worth (`gpuEquivalents`). Kubernetes
and Kueue know no worth, so it becomes a bound per resource: never tighter than the catalog, and together
looser. The spawner checks the worth itself.

Pure: no clock, no network.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..catalog.gpus import equivalents, grant, resource_of, resources_of
from ..catalog.model import Access, Catalog, GpuRequest, MigGpu, Profile, State, Team


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Most that a team may have at once; None is no bound."""

    cpu: int | None
    """Millicores."""
    memory: int | None
    """Bytes."""
    gpus: Mapping[str, int | None]
    """By resource name, for every resource that a pool offers or the quota names."""


def team_bounds(catalog: Catalog, name: str) -> Bounds:
    """Work out the bounds of one team.

    A GPU resource that the quota does not name is unbounded if a profile of the team leads to it, and
    else zero: there is nothing that anyone could start.
    """
    team = catalog.teams[name]
    reachable = largest_requests(catalog, name)
    worth = unit_worth(catalog)
    gpus: dict[str, int | None] = {}
    for resource in sorted({*worth, *team.quota.extended}):
        named = team.quota.extended.get(resource, None if resource in reachable else 0)
        gpus[resource] = _tighter(named, _by_worth(team, worth.get(resource)))
    return Bounds(cpu=team.quota.cpu, memory=team.quota.memory, gpus=gpus)


def _tighter(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _by_worth(team: Team, unit: Fraction | None) -> int | None:
    if team.quota.gpu_equivalents is None or not unit:
        return None
    return int(Fraction(team.quota.gpu_equivalents) / unit)


def unit_worth(catalog: Catalog) -> dict[str, Fraction]:
    """Give the smallest worth of one unit of each resource, over all pools that offer it."""
    worth: dict[str, Fraction] = {}
    for pool in catalog.pools.values():
        if pool.gpu is None:
            continue
        slices = pool.gpu.geometry if isinstance(pool.gpu, MigGpu) else [""]
        for slice_name in slices:
            resource = resource_of(pool.gpu, slice_name)
            unit = equivalents(pool.gpu, slice_name, 1)
            worth[resource] = min(unit, worth.get(resource, unit))
    return worth


def pools_by_resource(catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """Name the pools that offer each GPU resource."""
    found: dict[str, tuple[str, ...]] = {}
    for name, pool in catalog.pools.items():
        for resource in resources_of(pool.gpu) if pool.gpu else ():
            found[resource] = (*found.get(resource, ()), name)
    return found


def largest_requests(catalog: Catalog, team: str) -> dict[str, int]:
    """Give the most of each GPU resource that one workspace of a team can ask for."""
    largest: dict[str, int] = {}
    for profile in team_profiles(catalog, team):
        for request in gpu_requests(profile):
            pool = catalog.pools.get(request.pool)
            if pool is not None and pool.gpu is not None:
                resource = grant(pool.gpu, request).resource
                largest[resource] = max(request.count, largest.get(resource, 0))
    return largest


def gpu_requests(profile: Profile) -> Iterator[GpuRequest]:
    """Give every GPU request that a profile can lead to."""
    options = [o.resources.gpu for choice in profile.questions.values() for o in choice.options.values()]
    yield from (request for request in (profile.resources.gpu, *options) if request is not None)


def team_profiles(catalog: Catalog, team: str) -> Iterator[Profile]:
    """Give the profile versions that members of a team can start."""
    for profile in catalog.profiles:
        if profile.state is not State.RETIRED and _reaches(profile.access, catalog.teams[team], team):
            yield profile


def _reaches(access: Access | None, team: Team, name: str) -> bool:
    if access is None or access.everyone or name in access.teams:
        return True
    return not (set(access.groups).isdisjoint(team.groups) and set(access.users).isdisjoint(team.users))
