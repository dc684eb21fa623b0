"""Compare two catalogs from the point of view of people who saved choices, links and habits with the old one.

Pure: `today` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from ...errors import SelectionError
from ...units import format_cpu, gib
from ..model import Alias, Catalog, Profile, ProfileRef, Quota, State
from ..versions import offered, pick, resolve, state_on
from .changes import ORDER, Change, ChangeCode, Impact
from .profiles import compare_profiles

_SHOWN = " → "


def diff(old: Catalog, new: Catalog, *, today: date) -> tuple[Change, ...]:
    """List what users will notice, the worst first; both catalogs in their explicit form."""
    changes = [
        *_versions(old, new, today),
        *_added(old, new, today),
        *_names(old, new, today),
        *_teams(old, new),
    ]
    return tuple(sorted(dict.fromkeys(changes), key=lambda change: ORDER[change.impact]))


def _versions(old: Catalog, new: Catalog, today: date) -> Iterator[Change]:
    """Follow every version that starts today into the new catalog."""
    compared: set[tuple[tuple[str, int], tuple[str, int]]] = set()
    for before in old.profiles:
        if not _starts(before, today):
            continue
        try:
            after = resolve(new, before.name, before.version, today=today).profile
        except SelectionError as error:
            yield Change(
                impact=Impact.BREAKING,
                code=ChangeCode.NO_LONGER_STARTS,
                subject=before.label,
                message=f"saved choices no longer start: {error.message}",
                help="Keep the version with state: retired and replacedBy.",
            )
            continue
        if before.key != after.key:
            yield Change(
                impact=Impact.NOTICEABLE,
                code=ChangeCode.MOVED,
                subject=before.label,
                message=f"saved choices start {after.label} from now on",
            )
        yield from _state(before, after, today)
        compared.add((before.key, after.key))
        yield from _pair(old, before, new, after)
    yield from _recommended(old, new, today, compared)


def _starts(profile: Profile, today: date) -> bool:
    state = state_on(profile, today)
    return state in {State.ACTIVE, State.HIDDEN} or (
        state is State.DEPRECATED and profile.replaced_by is None
    )


def _pair(old: Catalog, before: Profile, new: Catalog, after: Profile) -> Iterator[Change]:
    subject = before.label if before.key == after.key else f"{before.label}{_SHOWN}{after.label}"
    for impact, code, message in compare_profiles(old, before, new, after):
        yield Change(impact=impact, code=code, subject=subject, message=message)


def _state(before: Profile, after: Profile, today: date) -> Iterator[Change]:
    if before.key != after.key:
        return
    was, becomes = state_on(before, today), state_on(after, today)
    if was is becomes and not _ends_sooner(before, after):
        return
    if becomes is State.DEPRECATED:
        until = f"; can be started until {after.until.isoformat()}" if after.until else ""
        yield Change(
            impact=Impact.NOTICEABLE,
            code=ChangeCode.DEPRECATED,
            subject=after.label,
            message=f"deprecated without replacement{until}",
            help="Write replacedBy, or say in message what users should do.",
        )
    elif becomes is State.HIDDEN:
        yield Change(
            impact=Impact.NOTICEABLE,
            code=ChangeCode.HIDDEN,
            subject=after.label,
            message="no longer on the spawn page; links and saved choices still start it",
        )
    else:
        yield Change(
            impact=Impact.MINOR, code=ChangeCode.OFFERED, subject=after.label, message=f"{was} → {becomes}"
        )


def _ends_sooner(before: Profile, after: Profile) -> bool:
    return after.until is not None and (before.until is None or after.until < before.until)


def _recommended(
    old: Catalog, new: Catalog, today: date, compared: set[tuple[tuple[str, int], tuple[str, int]]]
) -> Iterator[Change]:
    """Compare what somebody gets who asks by name only."""
    for name in dict.fromkeys(profile.name for profile in old.profiles):
        before = pick(old, ProfileRef(name, Alias.RECOMMENDED), today=today)
        after = pick(new, ProfileRef(name, Alias.RECOMMENDED), today=today)
        if before is None or after is None or before.version == after.version:
            continue
        if state_on(after, today) is State.RETIRED or not _starts(before, today):
            continue
        yield Change(
            impact=Impact.MINOR,
            code=ChangeCode.RECOMMENDED,
            subject=name,
            message=f"the name alone means version {after.version} instead of {before.version}",
        )
        if (before.key, after.key) not in compared:
            yield from _pair(old, before, new, after)


def _added(old: Catalog, new: Catalog, today: date) -> Iterator[Change]:
    for profile in offered(new, today=today):
        if profile.key not in old.by_key:
            yield Change(
                impact=Impact.MINOR,
                code=ChangeCode.ADDED,
                subject=profile.label,
                message=f"new on the spawn page: {profile.display_name}",
            )


def _names(old: Catalog, new: Catalog, today: date) -> Iterator[Change]:
    for alias, was in old.aliases.items():
        becomes = new.aliases.get(alias)
        if becomes is None and pick(new, ProfileRef(alias), today=today) is None:
            yield Change(
                impact=Impact.BREAKING,
                code=ChangeCode.ALIAS,
                subject=alias,
                message="the alias is gone: links with it no longer work",
                help="Keep it and let it name another profile.",
            )
        elif becomes is not None and becomes != was:
            yield Change(
                impact=Impact.NOTICEABLE,
                code=ChangeCode.ALIAS,
                subject=alias,
                message=f"the alias means {becomes} instead of {was}",
            )
    if old.defaults.profile != new.defaults.profile:
        names = [str(ref) if ref else "none" for ref in (old.defaults.profile, new.defaults.profile)]
        yield Change(
            impact=Impact.MINOR,
            code=ChangeCode.DEFAULT_PROFILE,
            subject="spawn page",
            message=f"preselected: {_SHOWN.join(names)}",
        )


def _teams(old: Catalog, new: Catalog) -> Iterator[Change]:
    yield from _quota("all users together", old.quota, new.quota)
    for name, before in old.teams.items():
        after = new.teams.get(name)
        if after is None:
            yield Change(
                impact=Impact.BREAKING,
                code=ChangeCode.TEAM,
                subject=f"team {name}",
                message="the team is gone",
            )
            continue
        for kind in ("groups", "users"):
            if lost := [member for member in getattr(before, kind) if member not in getattr(after, kind)]:
                yield Change(
                    impact=Impact.BREAKING,
                    code=ChangeCode.TEAM,
                    subject=f"team {name}",
                    message=f"{kind} that are no longer in the team: {', '.join(lost)}",
                )
        yield from _quota(f"team {name}", before.quota, after.quota)
        yield from _quota(f"each member of {name}", before.per_user, after.per_user)


def _quota(subject: str, before: Quota, after: Quota) -> Iterator[Change]:
    was, becomes = _bounds(before), _bounds(after)
    for key in dict.fromkeys([*was, *becomes]):
        had, has = was.get(key), becomes.get(key)
        if had == has:
            continue
        lower = has is not None and (had is None or has < had)
        yield Change(
            impact=Impact.NOTICEABLE if lower else Impact.MINOR,
            code=ChangeCode.QUOTA,
            subject=subject,
            message=f"{key}: {_bound(key, had)} → {_bound(key, has)}",
        )


def _bounds(quota: Quota) -> dict[str, int | Decimal]:
    written: dict[str, int | Decimal | None] = {
        "servers": quota.servers,
        "cpu": quota.cpu,
        "memory": quota.memory,
        "gpuEquivalents": quota.gpu_equivalents,
        **quota.extended,
    }
    return {key: bound for key, bound in written.items() if bound is not None}


def _bound(key: str, value: int | Decimal | None) -> str:
    if value is None:
        return "no bound"
    if key == "cpu":
        return format_cpu(int(value))
    return gib(int(value)) if key == "memory" else str(value)
