"""Differences between two versions of a profile, as the same user meets them one after the other.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ...units import format_duration
from ..model import Catalog, Profile, Session
from .changes import ChangeCode, Impact
from .choices import compare_choices
from .offers import compare_access, compare_images, compare_prices, offered_images
from .resources import Difference, compare_resources
from .storage import compare_storage


def compare_profiles(old: Catalog, before: Profile, new: Catalog, after: Profile) -> Iterator[Difference]:
    """Compare everything that a user gets, from the most to the least visible."""
    if before.display_name != after.display_name:
        message = f"it is called {after.display_name} instead of {before.display_name}"
        yield Impact.MINOR, ChangeCode.RENAMED, message
    yield from compare_access(old, before.access, new, after.access)
    yield from compare_resources(old, before.resources, new, after.resources)
    yield from compare_storage(before.storage, after.storage)
    yield from _images(old, before, new, after)
    yield from compare_choices(old, before, new, after)
    yield from _session(before.session, after.session)
    yield from _security(before, after)
    yield from _environment(before, after)
    yield from compare_prices(before.price, after.price)


def _images(old: Catalog, before: Profile, new: Catalog, after: Profile) -> Iterator[Difference]:
    had, has = before.images, after.images
    yield from compare_images("the image", old.images[had[0]], new.images[has[0]])
    for key in had:
        if key not in offered_images(after) and len(had) > 1:
            yield Impact.NOTICEABLE, ChangeCode.IMAGE_REMOVED, f"the image {key} is no longer offered"
        elif key in new.images and key != had[0]:
            yield from compare_images(f"the image {key}", old.images[key], new.images[key])
    for key in has:
        if key not in offered_images(before) and key != has[0]:
            yield Impact.MINOR, ChangeCode.IMAGE, f"the image {key} is added"


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
