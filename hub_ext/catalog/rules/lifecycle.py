"""Versions: each once, replaced by something that can be started, and aliases that lead somewhere.

`until` is not judged here: whether a date has passed depends on the day, and a catalog that was right
yesterday must load today.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

from ...errors import SelectionError
from ..codes import Code
from ..model import Alias, Profile, ProfileRef, State
from ..problems import Loc, Problem
from ..versions import follow, pick, resolve
from .context import Context, suggestion

_ENDING: Final = {State.DEPRECATED, State.RETIRED}


def check_unique(context: Context) -> Iterator[Problem]:
    """A name and a version stand for one profile."""
    seen: dict[tuple[str, int], Loc] = {}
    for loc, profile in context.written_profiles():
        if profile.key in seen:
            numbers = [version or 0 for name, version in context.known_versions if name == profile.name]
            yield Problem(
                code=Code.DUPLICATE_VERSION,
                message=f"{profile.label} stands here twice",
                loc=(*loc, "version"),
                help=f"Give one of them another name, or version {max(numbers) + 1}.",
            )
        seen.setdefault(profile.key, loc)


def check_replacements(context: Context) -> Iterator[Problem]:
    """Where `replacedBy` leads."""
    for loc, profile in context.written_profiles():
        if profile.replaced_by is None:
            if profile.state in _ENDING:
                yield Problem(
                    code=Code.NO_REPLACEMENT,
                    message=f"{profile.label} is {profile.state} and nothing replaces it",
                    loc=(*loc, "state"),
                    help="Write replacedBy, or say in message what users should do.",
                )
            continue
        if profile.state not in _ENDING:
            yield Problem(
                code=Code.REPLACEMENT_IDLE,
                message=f"{profile.label} is {profile.state}, so replacedBy has no effect",
                loc=(*loc, "replacedBy"),
                help=f"Write state: {State.DEPRECATED} or {State.RETIRED}.",
            )
        yield from _check_chain(context, (*loc, "replacedBy"), profile, profile.replaced_by)


def _check_chain(context: Context, loc: Loc, profile: Profile, written: ProfileRef) -> Iterator[Problem]:
    ref = ProfileRef(written.name or profile.name, written.version)
    if not _exists(context, ref):
        yield _unknown(context, ref, loc)
        return
    chain = list(follow(context.catalog, profile, today=date.min))
    last = chain[-1] if chain else profile
    if last.replaced_by is not None and _exists(context, _full(last)) and _is_intact(context, _full(last)):
        path = " → ".join(p.label for p in (profile, *chain))
        yield Problem(
            code=Code.REPLACEMENT_CYCLE,
            message=f"replacedBy leads in a circle: {path} → {_full(last)}",
            loc=loc,
            help="Let the last version be active, without replacedBy.",
        )
    elif chain and last.state is State.RETIRED and context.is_whole:
        yield Problem(
            code=Code.REPLACEMENT_RETIRED,
            message=f"{profile.label} is replaced by {last.label}, which is retired",
            loc=loc,
            help="Name a version that can be started.",
        )


def _full(profile: Profile) -> ProfileRef:
    ref = profile.replaced_by or ProfileRef(profile.name)
    return ProfileRef(ref.name or profile.name, ref.version)


def _exists(context: Context, ref: ProfileRef) -> bool:
    """Say whether a profile is there, or may be: a name or a version that cannot be read could be it."""
    known = context.known_versions
    if isinstance(ref.version, int):
        return not known.isdisjoint(
            {(ref.name, ref.version), (ref.name, None), ("", ref.version), ("", None)}
        )
    return any(name in {ref.name, ""} for name, _ in known)


def _is_intact(context: Context, ref: ProfileRef) -> bool:
    return pick(context.catalog, ref, today=date.min) is not None


def _unknown(context: Context, ref: ProfileRef, loc: Loc) -> Problem:
    named = ref.name if ref.version is Alias.RECOMMENDED else str(ref)
    return Problem(
        code=Code.UNKNOWN_PROFILE,
        message=f"there is no profile {named!r}",
        loc=loc,
        help=_meant(context, ref, is_replacement=loc[-1] == "replacedBy"),
    )


def _meant(context: Context, ref: ProfileRef, *, is_replacement: bool) -> str:
    versions = sorted(number for name, number in context.known_versions if name == ref.name and number)
    if versions:
        return f"{ref.name} has {', '.join(f'{ref.name}@{number}' for number in versions[-12:])}."
    if (target := context.written.aliases.get(ref.name)) is not None:
        return f"{ref.name} is an alias; write what it stands for: {target}."
    number = ref.name.removeprefix("v")
    if is_replacement and number.isdigit():
        return f"Write {number} for that version of the same profile, without quotes."
    return suggestion(ref.name, frozenset(name for name, _ in context.known_versions if name))


def check_until(context: Context) -> Iterator[Problem]:
    """A last day belongs to a deprecated version."""
    for loc, profile in context.written_profiles():
        if profile.until is not None and profile.state is not State.DEPRECATED:
            yield Problem(
                code=Code.UNTIL_WITHOUT_DEPRECATION,
                message=f"{profile.label} is {profile.state}, so until has no effect",
                loc=(*loc, "until"),
                help=f"Write state: {State.DEPRECATED}, or remove until.",
            )


def check_recommended(context: Context) -> Iterator[Problem]:
    """At most one version of a name is recommended, and it can be started."""
    seen: dict[str, str] = {}
    for loc, profile in context.written_profiles():
        if not profile.recommended:
            continue
        if profile.name in seen:
            yield Problem(
                code=Code.TWO_RECOMMENDED,
                message=f"{seen[profile.name]} and {profile.label} are both recommended",
                loc=(*loc, "recommended"),
                help="Keep one.",
            )
        seen.setdefault(profile.name, profile.label)


def check_aliases(context: Context) -> Iterator[Problem]:
    """Aliases and the default lead to something that can be started."""
    names = frozenset(name for name, _ in context.known_versions)
    for alias, ref in context.written.aliases.items():
        loc: Loc = ("aliases", alias)
        if alias in names:
            yield Problem(
                code=Code.ALIAS_SHADOWS_PROFILE,
                message=f"{alias!r} is the name of a profile",
                loc=loc,
                help="Give the alias another name.",
            )
        yield from _check_target(context, loc, ref)
    default = context.written.defaults.profile
    if default is not None:
        yield from _check_target(context, ("defaults", "profile"), default)
    elif len(names) > 1 and "defaults" not in context.left_out:
        yield Problem(
            code=Code.DEFAULT_IMPLICIT,
            message="no profile is preselected on the spawn page",
            loc=("defaults",) if context.written.defaults.model_fields_set else (),
            help="Write defaults: {profile: …} to preselect one.",
        )


def _check_target(context: Context, loc: Loc, ref: ProfileRef) -> Iterator[Problem]:
    target = context.written.aliases.get(ref.name) if loc[0] == "defaults" else None
    ref = target or ref
    if not _exists(context, ref):
        yield _unknown(context, ref, loc)
    elif context.is_whole:
        try:
            resolve(context.catalog, ref.name, str(ref.version), today=date.min)
        except SelectionError as error:
            yield Problem(
                code=Code.NOTHING_TO_START, message=error.message, loc=loc, help="Name another version."
            )
