"""Fill in what a catalog leaves unsaid, so that nobody who reads a profile has to look elsewhere.

After `expand` each profile carries its defaults, each choice is written out, several images are a choice
named `image`, and the preselected profile has its own name instead of an alias. Hashes, diffs and renderers
work on this form only.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from .base import Model
from .choices import Choice, ChoiceRef, Option
from .model import Access, Catalog, Defaults, Profile

IMAGE_CHOICE: Final = "image"
"""Name of the choice that several images of a profile become."""

M = TypeVar("M", bound=Model)


def overlay(base: M, top: M) -> M:
    """Give `base` with every key that is written in `top` put in its place, an explicit null included.

    Mappings (`mounts`) are put together name by name. If nothing is written, `base` itself comes back.
    """
    if not top.model_fields_set:
        return base
    written: dict[str, Any] = {}
    for key in top.model_fields_set:
        below, above = getattr(base, key), getattr(top, key)
        written[key] = {**below, **above} if isinstance(below, dict) and isinstance(above, dict) else above
    return base.model_copy(update=written)


def expand(catalog: Catalog) -> Catalog:
    """Give the same catalog in its explicit form.

    References must be right already (`references.check`); an unknown option set is left out here.
    """
    images = {
        key: Option(display_name=image.display_name, description=image.description, image=key)
        for key, image in catalog.images.items()
    }
    profiles = tuple(_expand_profile(catalog, profile, images) for profile in catalog.profiles)
    defaults, preselected = catalog.defaults, catalog.defaults.profile
    if preselected is not None and (meant := catalog.aliases.get(preselected.name)) is not None:
        defaults = defaults.model_copy(update={"profile": meant})
    return catalog.model_copy(update={"profiles": profiles, "defaults": defaults})


def _expand_profile(catalog: Catalog, profile: Profile, images: Mapping[str, Option]) -> Profile:
    defaults: Defaults = catalog.defaults
    return profile.model_copy(
        update={
            "storage": overlay(defaults.storage, profile.storage),
            "session": overlay(defaults.session, profile.session),
            "security": overlay(defaults.security, profile.security),
            "environment": {**defaults.environment, **profile.environment},
            "access": profile.access or defaults.access or Access(everyone=True),
            "choices": _expand_choices(catalog, profile, images),
        }
    )


def _expand_choices(catalog: Catalog, profile: Profile, images: Mapping[str, Option]) -> dict[str, Choice]:
    """Give the choices of a profile written out, the images first if there are several."""
    choices: dict[str, Choice] = {}
    if len(profile.images) > 1 and IMAGE_CHOICE not in profile.choices:
        options = {key: images[key] for key in profile.images if key in images}
        if options:
            choices[IMAGE_CHOICE] = Choice.model_construct(
                {"display_name", "options"}, display_name="Image", options=options
            )
    for key, source in profile.choices.items():
        choice = _expand_choice(catalog, source)
        if choice is not None:
            choices[key] = choice
    return choices


def _expand_choice(catalog: Catalog, source: Choice | ChoiceRef) -> Choice | None:
    """Give a choice written out; None if it refers to an option set, or to options, that do not exist."""
    if isinstance(source, Choice):
        return source
    choice = catalog.option_sets.get(source.option_set)
    if choice is None:
        return None
    options = choice.options
    if source.only:
        options = {key: options[key] for key in source.only if key in options}
        if not options:
            return None
    default = source.default or choice.default
    return choice.model_copy(
        update={"options": options, "default": default if default in options else next(iter(options))}
    )
