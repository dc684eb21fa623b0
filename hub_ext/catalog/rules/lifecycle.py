"""Versions: each once, replaced by something that can be started, and aliases that lead somewhere.

`until` is not judged here: whether a date has passed depends on the day, and a catalog that was right
yesterday must load today.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from ...errors import SelectionError
from ..codes import Code
from ..model import Alias, Profile, ProfileRef, State
from ..problems import Loc, Problem
from ..versions import offered, pick, resolve
from .context import Context, suggestion

_ENDING: Final = {State.DEPRECATED, State.RETIRED}
_MOST_LABELS: Final = 8
"""Versions of a circle that a message names."""


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
    chains = _Chains(context)
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
        yield from _check_chain(context, chains, (*loc, "replacedBy"), profile)


@dataclass(slots=True)
class _Chains:
    """Where `replacedBy` leads from each version; each is walked once, however long the chains are."""

    context: Context
    ends: dict[tuple[str, int], Profile] = field(default_factory=dict)
    """Last version of each chain; those that never end are not here."""
    circles: dict[tuple[str, int], list[Profile]] = field(default_factory=dict)
    """Each circle, by the version at which it was entered."""
    walked: set[tuple[str, int]] = field(default_factory=set)
    picked: dict[ProfileRef, Profile | None] = field(default_factory=dict)

    def walk(self, start: Profile) -> None:
        """Follow the chain of a version until it ends, or comes to what is known already."""
        way: list[Profile] = []
        here: dict[tuple[str, int], int] = {}
        profile: Profile | None = start
        while profile is not None and profile.key not in self.walked:
            here[profile.key] = len(way)
            self.walked.add(profile.key)
            way.append(profile)
            profile = self._next(profile)
        if profile is not None and profile.key in here:
            self.circles[profile.key] = way[here[profile.key] :]
            return
        end = way[-1] if profile is None else self.ends.get(profile.key)
        if end is not None:
            self.ends.update(dict.fromkeys(here, end))

    def _next(self, profile: Profile) -> Profile | None:
        if profile.replaced_by is None:
            return None
        ref = _full(profile, profile.replaced_by)
        if ref not in self.picked:
            self.picked[ref] = pick(self.context.catalog, ref, today=date.min)
        return self.picked[ref]


def _check_chain(context: Context, chains: _Chains, loc: Loc, profile: Profile) -> Iterator[Problem]:
    if profile.replaced_by is None:
        return
    ref = _full(profile, profile.replaced_by)
    if not _exists(context, ref):
        yield _unknown(context, ref, loc)
        return
    chains.walk(profile)
    if circle := chains.circles.pop(profile.key, None):
        labels = [one.label for one in (*circle, circle[0])]
        if len(labels) > _MOST_LABELS:
            labels[_MOST_LABELS // 2 : -_MOST_LABELS // 2] = ["…"]
        yield Problem(
            code=Code.REPLACEMENT_CYCLE,
            message=f"replacedBy leads in a circle: {' → '.join(labels)}",
            loc=loc,
            help="Let the last version be active, without replacedBy.",
        )
        return
    last = chains.ends.get(profile.key, profile)
    if last.key != profile.key and last.state is State.RETIRED and context.is_whole:
        yield Problem(
            code=Code.REPLACEMENT_RETIRED,
            message=f"{profile.label} is replaced by {last.label}, which is retired",
            loc=loc,
            help="Name a version that can be started.",
        )


def _full(profile: Profile, ref: ProfileRef) -> ProfileRef:
    return ProfileRef(ref.name or profile.name, ref.version)


def _exists(context: Context, ref: ProfileRef) -> bool:
    """Say whether a profile is there, or may be: a name or a version that cannot be read could be it."""
    known = context.known_versions
    if isinstance(ref.version, int):
        return not known.isdisjoint(
            {(ref.name, ref.version), (ref.name, None), ("", ref.version), ("", None)}
        )
    return any(name in {ref.name, ""} for name, _ in known)


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


def check_offered(context: Context) -> Iterator[Problem]:
    """Something is on the spawn page."""
    if context.is_whole and not offered(context.catalog, today=date.min):
        yield Problem(
            code=Code.NOTHING_OFFERED,
            message="no version is active, so the spawn page is empty",
            loc=("profiles",),
            help=f"Add a profile, or write state: {State.ACTIVE} for one.",
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
