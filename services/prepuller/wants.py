"""What the catalog wants where: images, with the credentials that workspaces use, by pool.

Pure: no clock, no network; `today` is an argument.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum
from typing import Final

from hub_ext.catalog.compose import Workspace, combinations, compose
from hub_ext.catalog.gpus import resources_of
from hub_ext.catalog.model import Catalog, Choice, Option, Pool, Profile, State
from hub_ext.catalog.versions import pick, state_on
from hub_ext.names import object_name, parse_image

from .facts import registry_of
from .settings import ExtraImage, Settings, Shared

EXTRA: Final = "extra"
"""In place of a profile, of images that the settings name."""


class Tier(IntEnum):
    """How much an image is needed."""

    REQUIRED = 0
    """A user can be given it now: it is fetched and pinned."""
    KEPT = 1
    """For going back: it is not fetched, and what is there stays pinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One image as workspaces fetch it. Whoever fetches it otherwise does not make it warm."""

    id: str
    """Names it in labels and object names."""
    image: str
    """The reference as workspaces write it."""
    secrets: tuple[str, ...] = ()
    runtime_class: str | None = None
    architectures: tuple[str, ...] = ()
    """Those that the image is built for; empty is not known."""

    @property
    def registry(self) -> str:
        return registry_of(self.image)

    @property
    def moves(self) -> bool:
        """Whether the reference may mean another image tomorrow."""
        return not parse_image(self.image).digest


def make_want(
    image: str,
    secrets: Iterable[str] = (),
    runtime_class: str | None = None,
    architectures: Iterable[str] = (),
) -> Want:
    """Make a want; equal image, secrets and runtime class give an equal id."""
    names = tuple(sorted(set(secrets)))
    return Want(
        id=object_name("image", image.rpartition("/")[2], image, *names, "class", runtime_class or ""),
        image=image,
        secrets=names,
        runtime_class=runtime_class,
        architectures=tuple(architectures),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Why an image is wanted in a pool."""

    want: str
    pool: str
    """Empty where the hub's own placement applies."""
    profile: str
    """Label of the version (`gpu-full@3`), or `EXTRA`."""
    image_key: str = ""
    """Key in the catalog, as the hub's log of starts has it."""
    tier: Tier
    preselected: bool = False
    """What the spawn page has filled in for somebody who never picked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A name in the settings that the catalog does not have: what is said there has no effect."""

    key: str
    """Of the settings, such as `skip` or `extraImages[0].pools`."""
    name: str
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """All that is wanted. The order of uses is the catalog's."""

    wants: Mapping[str, Want] = field(default_factory=dict)
    uses: tuple[Use, ...] = ()
    pools: Mapping[str, Pool | None] = field(default_factory=dict)
    """Pools that are used; None for the hub's own placement."""
    resources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Extended resources that workspaces of a pool ask for: their taints are tolerated by admission."""
    shared: Shared = field(default_factory=Shared)
    """What workspaces of all pools have."""
    strays: tuple[Stray, ...] = ()
    catalog: str = ""
    """See `mark_of`."""


def desire(catalog: Catalog, settings: Settings, *, today: date) -> Desired:
    """Say what a catalog wants.

    ==============================================  =========
    version                                         tier
    ==============================================  =========
    active, hidden, deprecated without replacement  required
    deprecated and replaced                         kept
    retired, the newest `release.keepPrevious`      kept
    other retired ones                              not at all
    ==============================================  =========

    A saved choice of a version that is not wanted moves along `replacedBy` to one that is.
    """
    wants: dict[str, Want] = {}
    uses: dict[Use, None] = {}
    pools: dict[str, Pool | None] = {}
    preselected = _preselected(catalog, today)
    for profile, tier in _tiers(catalog, settings, today):
        for workspace in _workspaces(catalog, profile):
            want = want_of(workspace, settings)
            wants[want.id] = want
            pools[workspace.pool_name] = workspace.pool
            first = profile is preselected and workspace.image_key == profile.images[0]
            use = Use(
                want=want.id,
                pool=workspace.pool_name,
                profile=profile.label,
                image_key=workspace.image_key,
                tier=tier,
                preselected=first,
            )
            uses[use] = None
    used = tuple(pools)
    for extra in (*(ExtraImage(ref=one) for one in settings.shared.images), *settings.extra_images):
        for name in used if not extra.pools else [name for name in extra.pools if name in catalog.pools]:
            pools.setdefault(name, catalog.pools.get(name))
            want = _extra(extra, pools[name], settings)
            wants[want.id] = want
            uses[Use(want=want.id, pool=name, profile=EXTRA, tier=Tier.REQUIRED)] = None
    resources = {
        name: resources_of(pool.gpu) if pool is not None and pool.gpu is not None else ()
        for name, pool in pools.items()
    }
    return Desired(
        wants=wants,
        uses=tuple(uses),
        pools=pools,
        resources=resources,
        shared=settings.shared,
        strays=tuple(_strays(catalog, settings)),
        catalog=mark_of(catalog),
    )


def mark_of(catalog: Catalog) -> str:
    """Name what a catalog says, whatever file says it: equal marks mean equal catalogs."""
    text = catalog.model_dump_json(by_alias=True, exclude_defaults=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _strays(catalog: Catalog, settings: Settings) -> Iterator[Stray]:
    profiles = tuple(dict.fromkeys(profile.name for profile in catalog.profiles))
    named = [("skip", name) for name in settings.skip]
    named += [(f"schedule[{number}].profile", one.profile) for number, one in enumerate(settings.schedule)]
    yield from (Stray(key=key, name=name, known=profiles) for key, name in named if name not in profiles)
    for number, extra in enumerate(settings.extra_images):
        for name in extra.pools:
            if name not in catalog.pools:
                yield Stray(key=f"extraImages[{number}].pools", name=name, known=tuple(catalog.pools))


def want_of(workspace: Workspace, settings: Settings) -> Want:
    """Say how a workspace fetches its image."""
    return make_want(
        str(workspace.reference),
        (*settings.shared.pull_secrets, *workspace.image.pull_secrets),
        workspace.pool.runtime_class if workspace.pool else None,
        workspace.image.architectures,
    )


def _extra(extra: ExtraImage, pool: Pool | None, settings: Settings) -> Want:
    secrets = (*settings.shared.pull_secrets, *extra.pull_secrets)
    return make_want(extra.ref, secrets, pool.runtime_class if pool else None)


def _preselected(catalog: Catalog, today: date) -> Profile | None:
    ref = catalog.defaults.profile
    return pick(catalog, ref, today=today) if ref is not None else None


def _tiers(catalog: Catalog, settings: Settings, today: date) -> Iterator[tuple[Profile, Tier]]:
    retired: dict[str, list[int]] = {}
    for profile in catalog.profiles:
        if state_on(profile, today) is State.RETIRED:
            retired.setdefault(profile.name, []).append(profile.version)
    previous = settings.release.keep_previous
    kept = {(name, number) for name, all_ in retired.items() for number in sorted(all_)[-previous:]}
    for profile in catalog.profiles:
        state = state_on(profile, today)
        if profile.name in settings.skip:
            continue
        if state is State.RETIRED:
            if previous and profile.key in kept:
                yield profile, Tier.KEPT
        elif state is State.DEPRECATED and profile.replaced_by is not None:
            yield profile, Tier.KEPT
        else:
            yield profile, Tier.REQUIRED


def _workspaces(catalog: Catalog, profile: Profile) -> Iterator[Workspace]:
    """Give one workspace for each image and pool that a profile can come to."""
    # Answers about processors alone change neither: without them few combinations are left.
    matter = {key: choice for key, choice in profile.questions.items() if _matters(profile, key, choice)}
    lean = profile.model_copy(update={"choices": matter})
    seen: set[tuple[str, str]] = set()
    for picks in combinations(lean):
        workspace = compose(catalog, lean, picks)
        key = (workspace.image_key, workspace.pool_name)
        if key not in seen:
            seen.add(key)
            yield workspace


def _matters(profile: Profile, key: str, choice: Choice) -> bool:
    options = [option for one in profile.questions.values() for option in one.options.values()]
    named = any(key in option.requires for option in options)
    return named or any(_changes(option) for option in choice.options.values())


def _changes(option: Option) -> bool:
    places = {"gpu", "pool"} & option.resources.model_fields_set
    return option.image is not None or bool(option.requires) or bool(places)
