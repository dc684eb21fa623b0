"""Choices: what a user may pick within a profile.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag, model_validator

from .base import EnvName, Key, Model, ShortModel, Text
from .images import CustomImage
from .policy import Access, Price
from .resources import PartialResources
from .storage import Storage


class Option(Model):
    """One thing to pick, and what it changes in the profile."""

    display_name: Text
    """What users read."""
    description: str = ""
    """A sentence more."""
    image: Key | None = None
    """Runs this image instead."""
    resources: PartialResources = PartialResources()
    """Replaces these resources."""
    storage: Storage = Storage()
    """Replaces the parts that are written here."""
    environment: dict[EnvName, str] = Field(default_factory=dict)
    """Adds these variables."""
    price: Price | None = None
    """Replaces the price."""
    access: Access | None = None
    """Offered only to these; left out, to all who may start the profile."""
    requires: dict[Key, tuple[Key, ...]] = Field(default_factory=dict)
    """Offered only together with one of these options of another choice: `{image: [pytorch-cu130]}`."""


class Choice(Model):
    """A question on the spawn page with a fixed set of answers."""

    display_name: Text
    """The question."""
    description: str = ""
    """A sentence more."""
    options: dict[Key, Option] = Field(min_length=1)
    """The answers, in the order they are shown."""
    default: Key | None = None
    """The answer that is preselected; left out, the first."""
    custom: CustomImage | None = None
    """Lets users type an image that is not listed; only for the choice named `image`."""


class ChoiceRef(ShortModel):
    """A choice taken from `optionSets`, whole or in part; the bare name takes it whole."""

    short: ClassVar = {"type": "string", "description": "Name of an option set."}

    option_set: Key
    """Which one."""
    only: tuple[Key, ...] = ()
    """The options to offer, in this order; empty offers all."""
    default: Key | None = None
    """Preselects another answer than the set does."""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return {"optionSet": value} if isinstance(value, str) else value


def _tag(value: Any) -> str:
    refers = isinstance(value, str | ChoiceRef) or (isinstance(value, dict) and "optionSet" in value)
    return "ref" if refers else "choice"


ChoiceSource = Annotated[
    Annotated[Choice, Tag("choice")] | Annotated[ChoiceRef, Tag("ref")],
    Discriminator(_tag),
]
"""A choice written in place, the name of an option set, or a part of one."""
