"""Everything that is named must exist.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..choices import Choice, ChoiceRef
from ..codes import Code
from ..expand import IMAGE_CHOICE
from ..model import Access, PartialResources, Profile, Resources
from ..problems import Loc, Problem
from .context import Context, suggestion


def _missing(code: Code, what: str, name: str, loc: Loc, known: frozenset[str]) -> Iterator[Problem]:
    if name not in known:
        yield Problem(
            code=code, message=f"there is no {what} {name!r}", loc=loc, help=suggestion(name, known)
        )


def check_images(context: Context) -> Iterator[Problem]:
    """Images that profiles and options name."""
    known = context.known["images"]
    for loc, profile in context.written_profiles():
        for index, key in enumerate(profile.images):
            yield from _missing(Code.UNKNOWN_IMAGE, "image", key, (*loc, "images", index), known)
    for loc, choice in context.written_choices():
        for key, option in choice.options.items():
            if option.image is not None:
                place = (*loc, "options", key, "image")
                yield from _missing(Code.UNKNOWN_IMAGE, "image", option.image, place, known)


def check_pools(context: Context) -> Iterator[Problem]:
    """Pools that resources name."""
    for loc, profile in context.written_profiles():
        yield from _pools_of(context, (*loc, "resources"), profile.resources)
    for loc, choice in context.written_choices():
        for key, option in choice.options.items():
            yield from _pools_of(context, (*loc, "options", key, "resources"), option.resources)


def _pools_of(context: Context, loc: Loc, resources: Resources | PartialResources) -> Iterator[Problem]:
    known = context.known["pools"]
    if resources.pool is not None:
        yield from _missing(Code.UNKNOWN_POOL, "pool", resources.pool, (*loc, "pool"), known)
    if resources.gpu is not None:
        yield from _missing(Code.UNKNOWN_POOL, "pool", resources.gpu.pool, (*loc, "gpu", "pool"), known)


def check_teams(context: Context) -> Iterator[Problem]:
    """Teams that access lists name."""
    for loc, access in _accesses(context):
        for index, team in enumerate(access.teams):
            yield from _missing(
                Code.UNKNOWN_TEAM, "team", team, (*loc, "teams", index), context.known["teams"]
            )


def _accesses(context: Context) -> Iterator[tuple[Loc, Access]]:
    if context.written.defaults.access is not None:
        yield ("defaults", "access"), context.written.defaults.access
    for key, priority in context.written.jobs.priorities.items():
        if priority.access is not None:
            yield ("jobs", "priorities", key, "access"), priority.access
    for loc, profile in context.written_profiles():
        if profile.access is not None:
            yield (*loc, "access"), profile.access
    for loc, choice in context.written_choices():
        for key, option in choice.options.items():
            if option.access is not None:
                yield (*loc, "options", key, "access"), option.access


def check_access(context: Context) -> Iterator[Problem]:
    """An access list that names nobody closes a profile by accident."""
    for loc, access in _accesses(context):
        if not (access.everyone or access.teams or access.groups or access.users):
            yield Problem(
                code=Code.ACCESS_EMPTY,
                message="nobody is named, so nobody could start it",
                loc=loc,
                help="Name teams, groups or users, or write everyone: true. To withdraw it: state: retired.",
            )


def check_choices(context: Context) -> Iterator[Problem]:
    """Option sets, and options that `only`, `default` and `requires` name."""
    for loc, choice in context.written_choices():
        yield from _default_of(loc, choice.default, choice.options)
    for loc, profile in context.written_profiles():
        for key, source in profile.choices.items():
            if isinstance(source, ChoiceRef):
                yield from _reference(context, (*loc, "choices", key), source)
    for loc, profile in context.profiles():
        yield from _requirements(loc, profile, context)


def _default_of(loc: Loc, default: str | None, options: Mapping[str, object]) -> Iterator[Problem]:
    if default is not None:
        yield from _missing(Code.UNKNOWN_OPTION, "option", default, (*loc, "default"), frozenset(options))


def _reference(context: Context, loc: Loc, ref: ChoiceRef) -> Iterator[Problem]:
    yield from _missing(
        Code.UNKNOWN_OPTION_SET,
        "option set",
        ref.option_set,
        (*loc, "optionSet"),
        context.known["optionSets"],
    )
    choice = context.written.option_sets.get(ref.option_set)
    if choice is None:
        return
    known = frozenset(choice.options)
    for index, key in enumerate(ref.only):
        yield from _missing(Code.UNKNOWN_OPTION, "option", key, (*loc, "only", index), known)
    offered = dict.fromkeys(ref.only) if ref.only else choice.options
    yield from _default_of(loc, ref.default, offered)


def _requirements(loc: Loc, profile: Profile, context: Context) -> Iterator[Problem]:
    questions = profile.questions
    for name, choice in questions.items():
        for key, option in choice.options.items():
            for other, allowed in option.requires.items():
                place = (*loc, "choices", name, "options", key, "requires", other)
                if other in questions:
                    known = frozenset(questions[other].options)
                    for index, wanted in enumerate(allowed):
                        # A set of options may be used in part; what is left out cannot be picked anyway.
                        if not _is_cut(context, profile, other, wanted):
                            yield from _missing(Code.UNKNOWN_OPTION, "option", wanted, (*place, index), known)
                elif other != IMAGE_CHOICE:
                    yield from _missing(Code.UNKNOWN_CHOICE, "choice", other, place, frozenset(questions))


def _is_cut(context: Context, profile: Profile, name: str, option: str) -> bool:
    """Say whether an option exists in general but not in this profile."""
    if name == IMAGE_CHOICE:
        return option in context.known["images"]
    written = next((p for p in context.written.profiles if p.key == profile.key), profile)
    source = written.choices.get(name)
    if not isinstance(source, ChoiceRef):
        return False
    full: Choice | None = context.written.option_sets.get(source.option_set)
    return full is not None and option in full.options
