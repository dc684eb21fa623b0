"""What a rule may look at.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

from ...spelling import did_you_mean
from ..choices import Choice
from ..compose import combinations
from ..expand import overlay
from ..model import Catalog, Profile, Resources, Storage
from ..problems import Loc

MOST_COMBINATIONS: Final = 2000
"""Combinations of options that are looked at for one profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One distinct thing that a profile can come to."""

    picks: Mapping[str, str]
    image_key: str
    resources: Resources
    storage: Storage

    @property
    def label(self) -> str:
        """Say which picks lead here, for a message; empty if there is nothing to pick."""
        return ", ".join(f"{name}={pick}" for name, pick in self.picks.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A catalog under examination. Entries of a wrong shape are left out; `known` still has their names."""

    written: Catalog
    """As the admin wrote it."""
    catalog: Catalog
    """In its explicit form."""
    indexes: tuple[int, ...]
    """Place of each profile in the source, where broken ones are left out."""
    known: Mapping[str, frozenset[str]]
    """Names per section, those of broken entries included."""
    known_versions: frozenset[tuple[str, int | None]]
    """Name and version of each profile, of broken ones too: empty or None where they cannot be read."""
    left_out: frozenset[str]
    """Sections that lack a broken entry, or are missing as a whole."""
    _variants: dict[tuple[str, int], tuple[Variant, ...]] = field(default_factory=dict, repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether everything that names is there, so that what is not named is really not named."""
        return self.left_out.isdisjoint({"profiles", "optionSets"})

    def profiles(self) -> Iterator[tuple[Loc, Profile]]:
        """Give each profile in its explicit form, and its place."""
        for index, profile in zip(self.indexes, self.catalog.profiles, strict=True):
            yield ("profiles", index), profile

    def written_profiles(self) -> Iterator[tuple[Loc, Profile]]:
        """Give each profile as it was written, and its place."""
        for index, profile in zip(self.indexes, self.written.profiles, strict=True):
            yield ("profiles", index), profile

    def written_choices(self) -> Iterator[tuple[Loc, Choice]]:
        """Give each choice where it is written out: option sets, and choices of profiles."""
        for key, choice in self.written.option_sets.items():
            yield ("optionSets", key), choice
        for loc, profile in self.written_profiles():
            for key, source in profile.choices.items():
                if isinstance(source, Choice):
                    yield (*loc, "choices", key), source

    def variants(self, profile: Profile) -> tuple[Variant, ...]:
        """Give every distinct outcome of a profile's choices.

        Empty if there are more combinations than are looked at.
        """
        found = self._variants.get(profile.key)
        if found is None:
            found = self._variants[profile.key] = tuple(_variants(profile))
        return found


def too_many(profile: Profile) -> bool:
    """Say whether a profile has more combinations than are looked at."""
    return prod(len(choice.options) for choice in profile.questions.values()) > MOST_COMBINATIONS


def _variants(profile: Profile) -> Iterator[Variant]:
    """Compose each combination once; options that change nothing here do not make a variant."""
    if too_many(profile):
        return
    questions = profile.questions
    seen: set[tuple[Any, ...]] = set()
    for picks in combinations(profile):
        options = {name: questions[name].options[pick] for name, pick in picks.items()}
        telling = {
            name: picks[name]
            for name, option in options.items()
            if option.image or option.resources.model_fields_set or option.storage.model_fields_set
        }
        key = tuple(telling.items())
        if key in seen:
            continue
        seen.add(key)
        image_key, resources, storage = profile.images[0], profile.resources, profile.storage
        for name in telling:
            option = options[name]
            image_key = option.image or image_key
            resources = option.resources.apply_to(resources)
            storage = overlay(storage, option.storage)
        yield Variant(picks=telling, image_key=image_key, resources=resources, storage=storage)


def suggestion(word: str, names: frozenset[str]) -> str:
    """Guess which name was meant, as a remedy."""
    there = f"There is: {', '.join(sorted(names)[:12])}." if names else "There is none yet."
    return did_you_mean(word, sorted(names), there)
