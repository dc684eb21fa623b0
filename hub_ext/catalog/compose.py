"""Turn a profile and what a user picked into one concrete workspace.

This is the seam between the catalog and everything that acts on it: the form shows `Profile.questions`, the
spawner and the renderers take the `Workspace` of `compose`.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from ..errors import NameRuleError, SelectionError, SelectionReason
from ..names import ImageReference, shown
from .choices import Choice, Option
from .expand import IMAGE_CHOICE, overlay
from .model import (
    Catalog,
    CpuAmount,
    GpuRequest,
    Image,
    MemoryAmount,
    MpsGpu,
    Pool,
    Price,
    Profile,
    Resources,
    Security,
    Session,
    Storage,
)

CUSTOM: str = "custom"
"""Prefix of a picked option that carries a typed image: ``custom:registry.example.com/x@sha256:…``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One concrete workspace: nothing is left to choose."""

    profile: Profile
    picks: Mapping[str, str]
    """Option per choice, the preselected ones included."""
    image_key: str
    """Key in `catalog.images`; empty for a typed image."""
    image: Image
    resources: Resources
    pool_name: str
    """Empty where no pool is named: the hub's own placement applies."""
    pool: Pool | None
    storage: Storage
    environment: Mapping[str, str]
    price: Price | None
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def reference(self) -> ImageReference:
        return self.image.reference

    @property
    def cpu(self) -> CpuAmount:
        return self.resources.cpu

    @property
    def memory(self) -> MemoryAmount:
        return self.resources.memory

    @property
    def gpu(self) -> GpuRequest | None:
        return self.resources.gpu

    @property
    def shared_memory(self) -> int | None:
        """Size of `/dev/shm` (bytes); None where it is not ours: the device plugin mounts the one of MPS."""
        gpu = self.pool.gpu if self.pool and self.gpu else None
        return None if isinstance(gpu, MpsGpu) else self.storage.shared_memory

    @property
    def session(self) -> Session:
        return self.profile.session

    @property
    def security(self) -> Security:
        return self.profile.security


def default_option(choice: Choice) -> str:
    """Give the option that is preselected."""
    return choice.default or next(iter(choice.options))


def compose(catalog: Catalog, profile: Profile, picks: Mapping[str, str]) -> Workspace:
    """Make the workspace that `picks` describe; choices that are left out take what is preselected.

    Raises
    ------
    SelectionError
        An unknown choice or option, options that do not go together, or a typed image that is not permitted.
    """
    questions = profile.questions
    for name in picks:
        if name not in questions:
            raise SelectionError(
                SelectionReason.UNKNOWN_CHOICE,
                f"{profile.display_name} has nothing to choose by the name {shown(name)}.",
                field=name,
                allowed=questions,
            )
    picked = {name: picks.get(name) or default_option(choice) for name, choice in questions.items()}
    options = {name: _option(questions[name], name, pick) for name, pick in picked.items()}
    _check_requirements(profile, picked, options)
    return _assemble(catalog, profile, picked, options)


def _option(choice: Choice, name: str, pick: str) -> Option:
    option = choice.options.get(pick)
    if option is not None:
        return option
    if choice.custom is not None and pick.startswith(f"{CUSTOM}:"):
        text = pick.removeprefix(f"{CUSTOM}:").strip()
        try:
            choice.custom.check(text)
        except NameRuleError as error:
            raise SelectionError(
                SelectionReason.BAD_IMAGE, error.message, field=name, help=error.help
            ) from error
        return Option(display_name=text)
    raise SelectionError(
        SelectionReason.UNKNOWN_OPTION,
        f"{choice.display_name}: there is no option {shown(pick)}.",
        field=name,
        allowed=choice.options,
    )


def unmet(profile: Profile, picked: Mapping[str, str], option: Option) -> str:
    """Name the first choice whose pick an option does not go with; empty if it goes with all.

    A profile with one image has no choice of images; the image counts as picked all the same.
    """
    for other, allowed in option.requires.items():
        pick = picked.get(other) or (profile.images[0] if other == IMAGE_CHOICE else None)
        if pick not in allowed:
            return other
    return ""


def _check_requirements(profile: Profile, picked: Mapping[str, str], options: Mapping[str, Option]) -> None:
    questions = profile.questions
    for name, option in options.items():
        other = unmet(profile, picked, option)
        if not other:
            continue
        allowed = option.requires[other]
        known = questions[other].options if other in questions else {}
        wanted = " or ".join(known[key].display_name for key in allowed if key in known)
        title = questions[other].display_name if other in questions else other
        raise SelectionError(
            SelectionReason.CONFLICTING_OPTIONS,
            f"{option.display_name} goes only with {title}: {wanted or 'nothing that is offered here'}.",
            field=name,
            allowed=[key for key in allowed if key in known],
        )


def _assemble(
    catalog: Catalog, profile: Profile, picked: Mapping[str, str], options: Mapping[str, Option]
) -> Workspace:
    image_key, resources, storage, price = (
        profile.images[0],
        profile.resources,
        profile.storage,
        profile.price,
    )
    environment = dict(profile.environment)
    for option in options.values():
        image_key = option.image or image_key
        resources = option.resources.apply_to(resources)
        storage = overlay(storage, option.storage)
        environment.update(option.environment)
        price = option.price or price
    image = catalog.images[image_key]
    custom = profile.questions[IMAGE_CHOICE].custom if IMAGE_CHOICE in profile.questions else None
    pick = picked.get(IMAGE_CHOICE, "")
    if custom is not None and pick.startswith(f"{CUSTOM}:"):
        image_key, image = "", _typed_image(pick, allow_tag=custom.allow_tag, secrets=custom.pull_secrets)
    pool_name = (resources.gpu.pool if resources.gpu else resources.pool) or ""
    return Workspace(
        profile=profile,
        picks=picked,
        image_key=image_key,
        image=image,
        resources=resources,
        pool_name=pool_name,
        pool=catalog.pools.get(pool_name),
        storage=storage,
        environment={**image.environment, **environment},
        price=price,
        options=options,
    )


def _typed_image(pick: str, *, allow_tag: bool, secrets: tuple[str, ...]) -> Image:
    ref = pick.removeprefix(f"{CUSTOM}:").strip()
    return Image(ref=ref, display_name=ref, allow_tag=allow_tag, pull_secrets=secrets)


def combinations(profile: Profile) -> Iterator[dict[str, str]]:
    """Give every combination of options that a user can reach, in a stable order."""
    questions = profile.questions
    names = list(questions)
    for picks in product(*(questions[name].options for name in names)):
        picked = dict(zip(names, picks, strict=True))
        if not any(unmet(profile, picked, questions[name].options[pick]) for name, pick in picked.items()):
            yield picked
