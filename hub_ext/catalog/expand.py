"""Fill in what a catalog leaves unsaid, so that nobody who reads a profile has to look elsewhere.

After `expand` each profile carries its defaults, each choice is written out, and several images are a choice
named `image`. Hashes, diffs and renderers work on this form only.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final, TypeVar

from .base import Model
from .choices import Choice, ChoiceRef, Option
from .model import Access, Catalog, Defaults, Profile

IMAGE_CHOICE: Final = "image"
"""Name of the choice that several images of a profile become."""

M = TypeVar("M", bound=Model)


def overlay(base: M, top: M) -> M:
    """Give `base` with every key that is written in `top` put in its place, an explicit null included."""
    written = {key: getattr(top, key) for key in top.model_fields_set}
    return base.model_copy(update=written)


def expand(catalog: Catalog) -> Catalog:
    """Give the same catalog in its explicit form.

    References must be right already (`references.check`); an unknown option set is left out here.
    """
    profiles = tuple(_expand_profile(catalog, profile) for profile in catalog.profiles)
    return catalog.model_copy(update={"profiles": profiles})


def _expand_profile(catalog: Catalog, profile: Profile) -> Profile:
    defaults: Defaults = catalog.defaults
    return profile.model_copy(
        update={
            "storage": overlay(defaults.storage, profile.storage),
            "session": overlay(defaults.session, profile.session),
            "security": overlay(defaults.security, profile.security),
            "environment": {**defaults.environment, **profile.environment},
            "access": profile.access or defaults.access or Access(everyone=True),
            "choices": expand_choices(catalog, profile),
        }
    )


def expand_choices(catalog: Catalog, profile: Profile) -> dict[str, Choice]:
    """Give the choices of a profile written out, the images first if there are several."""
    choices: dict[str, Choice] = {}
    if len(profile.images) > 1 and IMAGE_CHOICE not in profile.choices:
        options = {
            key: Option(display_name=image.display_name, description=image.description, image=key)
            for key in profile.images
            if (image := catalog.images.get(key))
        }
        if options:
            choices[IMAGE_CHOICE] = Choice(display_name="Image", options=options)
    for key, source in profile.choices.items():
        choice = expand_choice(catalog, source)
        if choice is not None:
            choices[key] = choice
    return choices


def expand_choice(catalog: Catalog, source: Choice | ChoiceRef) -> Choice | None:
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
