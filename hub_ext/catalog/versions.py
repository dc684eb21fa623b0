"""Which version of a profile a name, a saved choice or a link means; never a wrong one, never a crash.

============  ==========================  ==========================  ===========================
state         on the spawn page           asked for by number         a saved choice
============  ==========================  ==========================  ===========================
active        offered                     starts                      starts
hidden        not shown                   starts                      starts
deprecated    with a notice, unless it    starts with a notice until  moves along `replacedBy`;
              is replaced                 `until`                     without, as by number
retired       not shown                   moves along `replacedBy`    moves along `replacedBy`
============  ==========================  ==========================  ===========================

A deprecated version whose `until` has passed is treated like a retired one. Where nothing can be started, a
`SelectionError` says why. Running servers are not touched: they keep the version they were started with.

Pure: `today` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from ..errors import SelectionError, SelectionReason
from ..names import shown
from .model import Alias, Catalog, Profile, ProfileRef, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a choice of a profile came to."""

    profile: Profile
    moved_from: str = ""
    """Label (`name@2`) of the version that was asked for, if another took its place."""
    notice: str = ""
    """Plain text for the user: what was replaced, or until when it lasts; empty for nothing to say."""


def state_on(profile: Profile, today: date) -> State:
    """Give the state of a version on a day: a deprecated one retires after its last day."""
    if profile.state is State.DEPRECATED and profile.until is not None and profile.until < today:
        return State.RETIRED
    return profile.state


def offered(catalog: Catalog, *, today: date) -> tuple[Profile, ...]:
    """List the versions that the spawn page shows, in the catalog's order."""
    return tuple(profile for profile in catalog.profiles if _is_shown(profile, today))


def _is_shown(profile: Profile, today: date) -> bool:
    state = state_on(profile, today)
    return state is State.ACTIVE or (state is State.DEPRECATED and profile.replaced_by is None)


def versions_of(catalog: Catalog, name: str) -> tuple[Profile, ...]:
    """List the versions of a name, the newest first."""
    return tuple(sorted((p for p in catalog.profiles if p.name == name), key=lambda p: -p.version))


def pick(catalog: Catalog, ref: ProfileRef, *, today: date) -> Profile | None:
    """Give the version that a reference means, startable or not; None if there is none.

    `latest` is the newest active version, or failing that the newest that can be started at all;
    `recommended` is the one that is marked, or failing that the latest.
    """
    if isinstance(ref.version, int):
        return catalog.by_key.get((ref.name, ref.version))
    versions = versions_of(catalog, ref.name)
    if ref.version is Alias.RECOMMENDED:
        marked = [p for p in versions if p.recommended and state_on(p, today) is not State.RETIRED]
        if marked:
            return marked[0]
    for state in (State.ACTIVE, State.DEPRECATED, State.HIDDEN, State.RETIRED):
        for profile in versions:
            if state_on(profile, today) is state:
                return profile
    return None


def follow(catalog: Catalog, profile: Profile, *, today: date) -> Iterator[Profile]:
    """Give the versions that `replacedBy` leads to in turn; stops at a cycle or a missing one."""
    seen = {profile.key}
    while profile.replaced_by is not None:
        ref = profile.replaced_by
        successor = pick(catalog, ProfileRef(ref.name or profile.name, ref.version), today=today)
        if successor is None or successor.key in seen:
            return
        seen.add(successor.key)
        yield successor
        profile = successor


def resolve(
    catalog: Catalog, name: str, version: int | str | None = None, *, today: date, explicit: bool = False
) -> Resolution:
    """Say which version a choice means.

    Parameters
    ----------
    name
        A profile, or one of the catalog's aliases.
    version
        A number, `latest` or `recommended`; None is what the alias says, else `recommended`.
    explicit
        Somebody asked for this very version now: a deprecated one then starts until its last day, even if
        it is replaced.

    Raises
    ------
    SelectionError
        `unknown-profile`, `unknown-version`, or `retired` where nothing took its place.
    """
    ref = _reference(catalog, name, version)
    profile = pick(catalog, ref, today=today)
    if profile is None:
        raise _unknown(catalog, ref, name, today=today)
    state = state_on(profile, today)
    if state in {State.ACTIVE, State.HIDDEN}:
        return Resolution(profile=profile)
    if state is State.DEPRECATED and (explicit or profile.replaced_by is None):
        return Resolution(profile=profile, notice=lifetime_notice(profile))
    for successor in follow(catalog, profile, today=today):
        next_state = state_on(successor, today)
        replaced_again = next_state is State.DEPRECATED and successor.replaced_by is not None
        if next_state is not State.RETIRED and not replaced_again:
            return Resolution(
                profile=successor, moved_from=profile.label, notice=_moved_notice(profile, successor)
            )
    raise SelectionError(
        SelectionReason.RETIRED,
        _sentence(
            f"{profile.display_name} (version {profile.version}) is no longer offered.", profile.message
        ),
        field="version",
        allowed=[p.name for p in offered(catalog, today=today)],
    )


def _reference(catalog: Catalog, name: str, version: int | str | None) -> ProfileRef:
    target = catalog.aliases.get(name) or ProfileRef(name)
    if version is None or version == "":
        return target
    if isinstance(version, str) and version in set(Alias):
        return ProfileRef(target.name, Alias(version))
    number = (
        int(version) if str(version).isascii() and str(version).isdigit() and len(str(version)) < 10 else 0
    )
    return ProfileRef(target.name, number)


def _unknown(catalog: Catalog, ref: ProfileRef, asked: str, *, today: date) -> SelectionError:
    versions = versions_of(catalog, ref.name)
    if not versions:
        return SelectionError(
            SelectionReason.UNKNOWN_PROFILE,
            f"There is no workspace {shown(asked)}.",
            field="profile",
            allowed=dict.fromkeys(p.name for p in offered(catalog, today=today)),
        )
    return SelectionError(
        SelectionReason.UNKNOWN_VERSION,
        f"{versions[0].display_name} has no such version.",
        field="version",
        allowed=[str(p.version) for p in versions if state_on(p, today) is not State.RETIRED],
    )


def lifetime_notice(profile: Profile) -> str:
    """Say how long a deprecated version lasts; empty for any other."""
    if profile.state is not State.DEPRECATED:
        return ""
    last = f" and can be started until {profile.until.isoformat()}" if profile.until else ""
    return _sentence(
        f"{profile.display_name} (version {profile.version}) is deprecated{last}.", profile.message
    )


def _moved_notice(old: Profile, new: Profile) -> str:
    same = old.name == new.name
    into = f"version {new.version}" if same else f"{new.display_name} (version {new.version})"
    return _sentence(f"{old.display_name} (version {old.version}) is replaced by {into}.", old.message)


def _sentence(*parts: str) -> str:
    return " ".join(part.strip() for part in parts if part.strip())
