"""Differences in what a user can pick, and in what each pick gives.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..choices import Choice, Option
from ..compose import default_option
from ..expand import IMAGE_CHOICE, overlay
from ..model import Catalog, CustomImage, Profile
from .changes import ChangeCode, Impact
from .offers import compare_access, compare_images, compare_prices
from .resources import Difference, compare_resources
from .storage import compare_storage

NOTHING = Option.model_construct(display_name="")
"""Changes nothing, so what it gives is the profile itself."""


def compare_choices(old: Catalog, before: Profile, new: Catalog, after: Profile) -> Iterator[Difference]:
    """Compare the questions of a profile, and each answer that both have."""
    base = set(_gives(old, before, NOTHING, new, after, NOTHING))
    for name, choice in before.questions.items():
        later = after.questions.get(name)
        if _is_list_of_images(name, before):
            continue  # told by the images
        if later is None:
            yield Impact.NOTICEABLE, ChangeCode.CHOICE, f"{choice.display_name}: can no longer be chosen"
            continue
        yield from _question(choice, later)
        for key, option in choice.options.items():
            kept = later.options.get(key)
            where = f"{choice.display_name}, {option.display_name}"
            if kept is None:
                yield Impact.NOTICEABLE, ChangeCode.OPTION, f"{where}: no longer offered"
                continue
            for impact, code, message in _answer(old, before, option, new, after, kept):
                if (impact, code, message) not in base:
                    yield impact, code, f"{where}: {message}"
    for name, choice in after.questions.items():
        if name not in before.questions and not _is_list_of_images(name, after):
            yield Impact.MINOR, ChangeCode.CHOICE, f"{choice.display_name}: can be chosen"


def _is_list_of_images(name: str, profile: Profile) -> bool:
    """Say whether a choice is nothing but the several images of a profile."""
    return name == IMAGE_CHOICE and len(profile.images) > 1


def _question(before: Choice, after: Choice) -> Iterator[Difference]:
    was, becomes = default_option(before), default_option(after)
    if was != becomes and was in after.options:
        names = " → ".join(after.options[key].display_name for key in (was, becomes))
        yield Impact.NOTICEABLE, ChangeCode.OPTION, f"{before.display_name}: preselected {names}"
    for key, option in after.options.items():
        if key not in before.options:
            yield Impact.MINOR, ChangeCode.OPTION, f"{before.display_name}, {option.display_name}: is added"
    yield from _typed(before.display_name, before.custom, after.custom)


def _typed(what: str, before: CustomImage | None, after: CustomImage | None) -> Iterator[Difference]:
    if before is not None and after is None:
        yield Impact.NOTICEABLE, ChangeCode.IMAGE_REMOVED, f"{what}: an image can no longer be typed"
    elif before is None and after is not None:
        yield Impact.MINOR, ChangeCode.IMAGE, f"{what}: an image can be typed"
    elif before is not None and after is not None:
        if lost := [place for place in before.registries if place not in after.registries]:
            message = f"{what}: images can no longer come from {', '.join(lost)}"
            yield Impact.NOTICEABLE, ChangeCode.IMAGE_REMOVED, message
        if before.allow_tag and not after.allow_tag:
            yield Impact.NOTICEABLE, ChangeCode.IMAGE_REMOVED, f"{what}: a typed image needs a digest"


def _answer(
    old: Catalog, before: Profile, option: Option, new: Catalog, after: Profile, kept: Option
) -> Iterator[Difference]:
    yield from compare_access(old, option.access, new, kept.access)
    yield from _gives(old, before, option, new, after, kept)
    for name, allowed in kept.requires.items():
        was = option.requires.get(name)
        if was is None or not set(was) <= set(allowed):
            yield Impact.NOTICEABLE, ChangeCode.OPTION, f"goes only with {name}: {', '.join(allowed)}"


def _gives(
    old: Catalog, before: Profile, option: Option, new: Catalog, after: Profile, kept: Option
) -> Iterator[Difference]:
    """Compare the profile with one option picked, before and after."""
    was, becomes = option.resources.apply_to(before.resources), kept.resources.apply_to(after.resources)
    yield from compare_resources(old, was, new, becomes)
    yield from compare_storage(overlay(before.storage, option.storage), overlay(after.storage, kept.storage))
    first, second = option.image or before.images[0], kept.image or after.images[0]
    yield from compare_images("the image", old.images[first], new.images[second])
    yield from compare_prices(option.price or before.price, kept.price or after.price)
    for name, value in option.environment.items():
        if kept.environment.get(name, after.environment.get(name)) != value:
            yield Impact.NOTICEABLE, ChangeCode.ENVIRONMENT, f"the variable {name} has another value"
