"""Differences between two versions of a profile, as the same user meets them one after the other.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ...units import format_duration, format_money
from ..model import Access, Catalog, Image, Price, Profile, Session
from .changes import ChangeCode, Impact
from .resources import Difference, compare_resources
from .storage import compare_storage


def compare_profiles(old: Catalog, before: Profile, new: Catalog, after: Profile) -> Iterator[Difference]:
    """Compare everything that a user gets, from the most to the least visible."""
    yield from _access(before.access, after.access)
    yield from compare_resources(old, before.resources, new, after.resources)
    yield from compare_storage(before.storage, after.storage)
    yield from _images(old, before, new, after)
    yield from _choices(old, before, new, after)
    yield from _session(before.session, after.session)
    yield from _security(before, after)
    yield from _environment(before, after)
    yield from _price(before.price, after.price)


def _access(before: Access | None, after: Access | None) -> Iterator[Difference]:
    old, new = before or Access(everyone=True), after or Access(everyone=True)
    if old.everyone != new.everyone:
        if new.everyone:
            yield Impact.MINOR, ChangeCode.ACCESS_GAINED, "everyone may start it now"
        else:
            yield Impact.BREAKING, ChangeCode.ACCESS_LOST, f"only {_named(new)} may start it now"
        return
    if old.everyone:
        return
    for kind in ("teams", "groups", "users"):
        had, has = getattr(old, kind), getattr(new, kind)
        if lost := [name for name in had if name not in has]:
            yield (
                Impact.BREAKING,
                ChangeCode.ACCESS_LOST,
                f"{kind} that may no longer start it: {', '.join(lost)}",
            )
        if gained := [name for name in has if name not in had]:
            yield Impact.MINOR, ChangeCode.ACCESS_GAINED, f"{kind} that may start it now: {', '.join(gained)}"


def _named(access: Access) -> str:
    return ", ".join([*access.teams, *access.groups, *access.users]) or "nobody"


def _images(old: Catalog, before: Profile, new: Catalog, after: Profile) -> Iterator[Difference]:
    first_old, first_new = old.images[before.images[0]], new.images[after.images[0]]
    yield from _image("the image", first_old, first_new)
    for key in before.images:
        if key not in after.images and len(before.images) > 1:
            yield Impact.NOTICEABLE, ChangeCode.IMAGE_REMOVED, f"the image {key} is no longer offered"
        elif key in after.images and key != before.images[0]:
            yield from _image(f"the image {key}", old.images[key], new.images[key])
    for key in after.images:
        if key not in before.images and key != after.images[0]:
            yield Impact.MINOR, ChangeCode.IMAGE, f"the image {key} is added"


def _image(what: str, before: Image, after: Image) -> Iterator[Difference]:
    if before.ref == after.ref:
        return
    had, has = (image.cuda.partition(".")[0] if image.cuda else "" for image in (before, after))
    if had and had != has:
        message = f"{what}: CUDA {before.cuda} → {after.cuda or 'none'}; compiled code has to be built again"
        yield Impact.BREAKING, ChangeCode.CUDA_MAJOR, message
    else:
        message = f"{what}: {before.display_name} → {after.display_name}"
        yield Impact.NOTICEABLE, ChangeCode.IMAGE, message


def _choices(old: Catalog, before: Profile, new: Catalog, after: Profile) -> Iterator[Difference]:
    for name, choice in before.questions.items():
        later = after.questions.get(name)
        if name == "image" and not any(
            option.resources.model_fields_set for option in choice.options.values()
        ):
            continue  # told by the images
        if later is None:
            yield Impact.NOTICEABLE, ChangeCode.CHOICE, f"{choice.display_name}: can no longer be chosen"
            continue
        for key, option in choice.options.items():
            kept = later.options.get(key)
            where = f"{choice.display_name}, {option.display_name}"
            if kept is None:
                yield Impact.NOTICEABLE, ChangeCode.OPTION, f"{where}: no longer offered"
                continue
            if not option.resources.model_fields_set and not kept.resources.model_fields_set:
                continue
            was, becomes = (
                option.resources.apply_to(before.resources),
                kept.resources.apply_to(after.resources),
            )
            for impact, code, message in compare_resources(old, was, new, becomes):
                yield impact, code, f"{where}: {message}"


def _session(before: Session, after: Session) -> Iterator[Difference]:
    pairs = (
        ("stop when idle", before.idle_timeout, after.idle_timeout),
        ("longest session", before.max_duration, after.max_duration),
        ("longest start", before.start_timeout, after.start_timeout),
    )
    for what, was, becomes in pairs:
        if was != becomes:
            shorter = becomes is not None and (was is None or becomes < was)
            impact = Impact.NOTICEABLE if shorter else Impact.MINOR
            yield impact, ChangeCode.SESSION, f"{what}: {_span(was)} → {_span(becomes)}"


def _span(value: timedelta | None) -> str:
    return "no limit" if value is None else format_duration(value)


def _security(before: Profile, after: Profile) -> Iterator[Difference]:
    for key in type(before.security).model_fields:
        was, becomes = getattr(before.security, key), getattr(after.security, key)
        if was != becomes:
            words = key.replace("_", " ")
            yield Impact.NOTICEABLE, ChangeCode.SECURITY, f"{words}: {_word(was)} → {_word(becomes)}"


def _word(value: object) -> str:
    return "the hub's" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _environment(before: Profile, after: Profile) -> Iterator[Difference]:
    for name in before.environment:
        if name not in after.environment:
            yield Impact.NOTICEABLE, ChangeCode.ENVIRONMENT, f"the variable {name} is no longer set"
        elif before.environment[name] != after.environment[name]:
            yield Impact.NOTICEABLE, ChangeCode.ENVIRONMENT, f"the variable {name} has another value"


def _price(before: Price | None, after: Price | None) -> Iterator[Difference]:
    if before == after:
        return
    had, has = (format_money(p.per_hour, p.currency) + " per hour" if p else "none" for p in (before, after))
    same = before is not None and after is not None and before.currency == after.currency
    cheaper = after is None or (same and before is not None and after.per_hour < before.per_hour)
    yield Impact.MINOR if cheaper else Impact.NOTICEABLE, ChangeCode.PRICE, f"price: {had} → {has}"
