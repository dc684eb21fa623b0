"""Differences in who may start something, what runs in it and what it costs.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...units import format_money
from ..model import Access, Catalog, Image, Price, Profile
from .changes import ChangeCode, Impact
from .resources import Difference

Member = tuple[str, str]
"""A group or a user of the hub: kind and name."""


def compare_access(
    old: Catalog, before: Access | None, new: Catalog, after: Access | None
) -> Iterator[Difference]:
    """Compare who may start it; a team that is written out as its groups and users loses nothing."""
    was, becomes = before or Access(everyone=True), after or Access(everyone=True)
    if was.everyone != becomes.everyone:
        if becomes.everyone:
            yield Impact.MINOR, ChangeCode.ACCESS_GAINED, "everyone may start it now"
        else:
            yield Impact.BREAKING, ChangeCode.ACCESS_LOST, f"only {_named(becomes)} may start it now"
        return
    if was.everyone:
        return
    for kind in ("teams", "groups", "users"):
        if lost := _only_in(kind, was, old, becomes, new):
            message = f"{kind} that may no longer start it: {', '.join(lost)}"
            yield Impact.BREAKING, ChangeCode.ACCESS_LOST, message
        if gained := _only_in(kind, becomes, new, was, old):
            message = f"{kind} that may start it now: {', '.join(gained)}"
            yield Impact.MINOR, ChangeCode.ACCESS_GAINED, message


def _only_in(kind: str, one: Access, its: Catalog, other: Access, others: Catalog) -> list[str]:
    reached = {
        member
        for place in ("teams", "groups", "users")
        for name in getattr(other, place)
        for member in _members(others, place, name)
    }
    names = [name for name in getattr(one, kind) if name not in getattr(other, kind)]
    return [name for name in names if not (members := _members(its, kind, name)) or not members <= reached]


def _members(catalog: Catalog, kind: str, name: str) -> set[Member]:
    if kind != "teams":
        return {(kind, name)}
    team = catalog.teams.get(name)
    groups, users = (team.groups, team.users) if team else ((), ())
    return {*(("groups", group) for group in groups), *(("users", user) for user in users)}


def _named(access: Access) -> str:
    return ", ".join([*access.teams, *access.groups, *access.users]) or "nobody"


def offered_images(profile: Profile) -> tuple[str, ...]:
    """Give the keys of all images that a profile can run, the preselected one first."""
    options = [option for choice in profile.questions.values() for option in choice.options.values()]
    return tuple(dict.fromkeys([*profile.images, *(option.image for option in options if option.image)]))


def compare_images(what: str, before: Image, after: Image) -> Iterator[Difference]:
    """Compare what runs; another CUDA major version is worse than another image."""
    if before.ref == after.ref:
        return
    had, has = (image.cuda.partition(".")[0] if image.cuda else "" for image in (before, after))
    if had and had != has:
        message = f"{what}: CUDA {before.cuda} → {after.cuda or 'none'}; compiled code has to be built again"
        yield Impact.BREAKING, ChangeCode.CUDA_MAJOR, message
    else:
        message = f"{what}: {before.display_name} → {after.display_name}"
        yield Impact.NOTICEABLE, ChangeCode.IMAGE, message


def compare_prices(before: Price | None, after: Price | None) -> Iterator[Difference]:
    """Compare what an hour costs; another currency counts as dearer."""
    if before == after:
        return
    had, has = (format_money(p.per_hour, p.currency) + " per hour" if p else "none" for p in (before, after))
    same = before is not None and after is not None and before.currency == after.currency
    cheaper = after is None or (same and before is not None and after.per_hour < before.per_hour)
    yield Impact.MINOR if cheaper else Impact.NOTICEABLE, ChangeCode.PRICE, f"price: {had} → {has}"
