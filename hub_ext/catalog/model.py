"""The vocabulary of the catalog, whole: ``apiVersion: gpu-workspaces/v1``, ``kind: Catalog``.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field

from .base import EnvName, Key, Model, Name
from .choices import Choice, ChoiceRef, Option
from .images import CustomImage, Image
from .jobs import Jobs, Priority, RunKind, RunRules
from .policy import Access, Price, Security, Session
from .pools import ExclusiveGpu, Gpu, MigGpu, MpsGpu, Pool, TimeSlicedGpu, Toleration
from .profiles import Alias, Profile, ProfileRef, State, Target, parse_profile_ref
from .resources import CpuAmount, GpuRequest, MemoryAmount, PartialResources, Resources
from .storage import Checkpoints, Home, Mount, Nfs, Scratch, Storage
from .teams import Quota, Team

API_VERSION = "gpu-workspaces/v1"
KIND = "Catalog"


class Defaults(Model):
    """What profiles get that do not say otherwise, key by key: a profile's `home` replaces this `home`."""

    profile: Target | None = None
    """The profile (or alias) that is preselected; left out, none is."""
    storage: Storage = Storage()
    session: Session = Session()
    security: Security = Security()
    access: Access | None = None
    """Who may start profiles that say nothing about it; left out, everyone."""
    environment: dict[EnvName, str] = Field(default_factory=dict)
    """Variables of every workspace."""


class Catalog(Model):
    """Every workspace that is offered, and what it is made of."""

    api_version: Literal["gpu-workspaces/v1"]
    """Version of this vocabulary."""
    kind: Literal["Catalog"]
    """Says that this is a catalog."""
    images: dict[Key, Image] = Field(default_factory=dict)
    """What runs in workspaces, by a name of your own."""
    pools: dict[Name, Pool] = Field(default_factory=dict)
    """Where workspaces are placed, and what a GPU is there, by a name of your own."""
    teams: dict[Name, Team] = Field(default_factory=dict)
    """Who belongs together, by a name of your own."""
    quota: Quota = Quota()
    """For all users together, with or without a team."""
    option_sets: dict[Key, Choice] = Field(default_factory=dict)
    """Choices that several profiles use."""
    defaults: Defaults = Defaults()
    aliases: dict[Name, Target] = Field(default_factory=dict)
    """Further names: `{llm: gpu-full-llm-dev@latest}`. They work in links and REST requests."""
    jobs: Jobs = Jobs()
    """What holds for all runs that are handed off."""
    profiles: tuple[Profile, ...]
    """What is offered, each version as an entry of its own."""

    @cached_property
    def by_key(self) -> dict[tuple[str, int], Profile]:
        """Profiles by name and version."""
        return {profile.key: profile for profile in self.profiles}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy without what was computed from the fields, which may be other ones now."""
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop("by_key", None)
        return copy


__all__ = [
    "API_VERSION",
    "KIND",
    "Access",
    "Alias",
    "Catalog",
    "Checkpoints",
    "Choice",
    "ChoiceRef",
    "CpuAmount",
    "CustomImage",
    "Defaults",
    "ExclusiveGpu",
    "Gpu",
    "GpuRequest",
    "Home",
    "Image",
    "Jobs",
    "MemoryAmount",
    "MigGpu",
    "Mount",
    "MpsGpu",
    "Nfs",
    "Option",
    "PartialResources",
    "Pool",
    "Price",
    "Priority",
    "Profile",
    "ProfileRef",
    "Quota",
    "Resources",
    "RunKind",
    "RunRules",
    "Scratch",
    "Security",
    "Session",
    "State",
    "Storage",
    "Team",
    "TimeSlicedGpu",
    "Toleration",
    "parse_profile_ref",
]
