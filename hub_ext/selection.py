"""From what somebody asked for to one workspace that they may start, or to one clear refusal.

All paths end here: the form, REST, saved options, options that were patched before a start, named servers.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from http import HTTPStatus
from typing import Any, Final

from .catalog.compose import CUSTOM, Workspace, compose, default_option
from .catalog.expand import IMAGE_CHOICE
from .catalog.model import Catalog, Profile
from .catalog.versions import Resolution, offered, resolve
from .errors import SelectionError, SelectionReason
from .names import shown
from .selection_access import Person, locked_text, offered_to, paying_teams, sees_everything
from .selection_input import PROFILE, RESERVED, TEAM, VERSION, Request, read_options
from .spelling import did_you_mean, meant

_NAMED: Final = 12
"""Names that a refusal lists at most."""

_LONGEST: Final = 400
"""Characters of one part of a refusal at most."""

_ALIKE: Final = 0.75
"""How alike a word must be to a key to have been meant for it (`difflib` ratio)."""

_FIRST_WORD: Final = re.compile(r"[^a-z0-9]+")

_STATUS: Final = {
    SelectionReason.NOT_ALLOWED: HTTPStatus.FORBIDDEN,
    SelectionReason.NOTHING_OFFERED: HTTPStatus.FORBIDDEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What will be started."""

    workspace: Workspace
    team: str | None
    """Team that it is booked on."""
    several_teams: bool
    """Whether the user could have said another one."""
    notice: str = ""
    """What to tell the user: that another version took the place of this one, or until when it lasts."""
    ignored: tuple[str, ...] = field(default=())
    """Keys that were sent and mean nothing."""

    @property
    def options(self) -> dict[str, Any]:
        """Give the choice in full, as it is kept in `user_options` and read again."""
        profile = self.workspace.profile
        team = {TEAM: self.team} if self.team and self.several_teams else {}
        return {PROFILE: profile.name, VERSION: profile.version, **team, **self.workspace.picks}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why nothing is started: one text for the form, the progress page, REST and the log."""

    reason: str
    text: str
    status: int


def select(
    catalog: Catalog, person: Person, raw: object, *, today: date, last: Mapping[str, Any] | None = None
) -> Selection | Refusal:
    """Judge a choice.

    Parameters
    ----------
    raw
        `user_options` as they came, of any type.
    last
        Options of this server that were accepted before, to tell withdrawn access from a wrong name.
    """
    try:
        return _select(catalog, person, raw, today=today, last=last or {})
    except SelectionError as error:
        return refuse(error, catalog, person)


def refuse(error: SelectionError, catalog: Catalog, person: Person) -> Refusal:
    """Give a selection's error its HTTP status.

    Where something is kept from the user, a name that does not exist is answered like one that is not theirs:
    403 for both. Where nothing is, the mistake is in the request: 400.
    """
    status = _STATUS.get(error.reason, HTTPStatus.BAD_REQUEST)
    unknown = error.reason.startswith("unknown-") or error.reason is SelectionReason.BAD_IMAGE
    if unknown and not sees_everything(catalog, person):
        status = HTTPStatus.FORBIDDEN
    text = " ".join(_sentence(part) for part in (error.message, error.help, _offer(error.allowed)) if part)
    return Refusal(reason=error.reason, text=text, status=int(status))


def _sentence(text: str) -> str:
    """Give a text of bounded length its full stop."""
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
    return short if short.endswith((".", "!", "?", "\N{HORIZONTAL ELLIPSIS}")) else f"{short}."


def _offer(names: Iterable[str]) -> str:
    listed = list(names)
    if not listed:
        return ""
    more = "" if len(listed) <= _NAMED else f" and {len(listed) - _NAMED} more"
    return f"Offered: {', '.join(listed[:_NAMED])}{more}."


def offers(catalog: Catalog, person: Person, *, today: date) -> tuple[Profile, ...]:
    """List what a user may start without a link, each as they see it, in the catalog's order."""
    seen = (offered_to(profile, catalog, person) for profile in offered(catalog, today=today))
    return tuple(profile for profile in seen if profile is not None)


def locked(catalog: Catalog, person: Person, *, today: date) -> tuple[Profile, ...]:
    """List what a user may see and not start, in the catalog's order."""
    return tuple(
        profile
        for profile in offered(catalog, today=today)
        if offered_to(profile, catalog, person) is None and locked_text(profile, catalog)
    )


def _select(
    catalog: Catalog, person: Person, raw: object, *, today: date, last: Mapping[str, Any]
) -> Selection:
    request = read_options(raw)
    if not request.profile:
        request, ignored = _default(catalog, person, request, today=today)
    else:
        ignored = ()
    resolution = _resolve(catalog, person, request, today=today, last=last, explicit=raw != last)
    profile = resolution.profile
    picks, lost = _picks(profile, request, moved=bool(resolution.moved_from))
    teams = paying_teams(profile, catalog, person)
    return Selection(
        workspace=compose(catalog, profile, picks),
        team=_team(request, teams),
        several_teams=len(teams) > 1,
        notice=" ".join(filter(None, (resolution.notice, *lost))),
        ignored=ignored,
    )


def _default(
    catalog: Catalog, person: Person, request: Request, *, today: date
) -> tuple[Request, tuple[str, ...]]:
    """Read a request that names no workspace: the catalog's default, or the only one there is.

    A key that somebody meant something by is refused; only one that means nothing at all is ignored.
    """
    mine = offers(catalog, person, today=today)
    names = list(dict.fromkeys(profile.name for profile in mine))
    known = {IMAGE_CHOICE, *RESERVED, *(key for profile in mine for key in profile.questions)}
    for key in request.picks:
        word = _FIRST_WORD.split(key.lower(), maxsplit=1)[0]
        if meant(word, sorted(known), alike=_ALIKE):
            raise SelectionError(
                SelectionReason.BAD_REQUEST,
                f"{shown(key)} does not say which workspace to start; that stands in “{PROFILE}”.",
                field=key,
                allowed=names,
            )
    default = catalog.defaults.profile
    if default is not None and default.name in names:
        return Request(profile=default.name, version=default.version, team=request.team), tuple(request.picks)
    if len(names) == 1:
        return Request(profile=names[0], team=request.team), tuple(request.picks)
    raise SelectionError(
        SelectionReason.BAD_REQUEST if names else SelectionReason.NOTHING_OFFERED,
        "Say which workspace to start." if names else "No workspace is offered to you.",
        field=PROFILE,
        allowed=names,
    )


def _resolve(
    catalog: Catalog,
    person: Person,
    request: Request,
    *,
    today: date,
    last: Mapping[str, Any],
    explicit: bool,
) -> Resolution:
    """Find the profile that a request means, as the user sees it."""
    mine = {profile.name for profile in catalog.profiles if offered_to(profile, catalog, person)}
    alias = catalog.aliases.get(request.profile)
    if (alias.name if alias else request.profile) not in mine:
        raise _not_offered(catalog, person, request, today=today, last=last)
    resolution = resolve(catalog, request.profile, request.version, today=today, explicit=explicit)
    profile = offered_to(resolution.profile, catalog, person)
    if profile is None:
        raise _not_offered(catalog, person, request, today=today, last=last)
    return replace(resolution, profile=profile)


def _not_offered(
    catalog: Catalog, person: Person, request: Request, *, today: date, last: Mapping[str, Any]
) -> SelectionError:
    if request.profile == last.get(PROFILE) and any(p.name == request.profile for p in catalog.profiles):
        return SelectionError(
            SelectionReason.NOT_ALLOWED,
            f"Your access to {shown(request.profile)} has been withdrawn: "
            "you are no longer in a group that may start it.",
            field=PROFILE,
        )
    for profile in locked(catalog, person, today=today):
        if request.profile == profile.name:
            return SelectionError(SelectionReason.NOT_ALLOWED, locked_text(profile, catalog), field=PROFILE)
    names = [profile.name for profile in offers(catalog, person, today=today)]
    return SelectionError(
        SelectionReason.UNKNOWN_PROFILE,
        f"No workspace {shown(request.profile)} is offered to you.",
        field=PROFILE,
        allowed=names,
    )


def _picks(profile: Profile, request: Request, *, moved: bool) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Give the picks to compose; a version that took over drops, and names, what it has not."""
    picks = dict(request.picks)
    if IMAGE_CHOICE not in profile.questions and picks.get(IMAGE_CHOICE) == profile.images[0]:
        del picks[IMAGE_CHOICE]
    if moved:
        lost = {key: text for key, pick in picks.items() if (text := _lost(profile, key, pick))}
        return {key: pick for key, pick in picks.items() if key not in lost}, tuple(lost.values())
    for key in picks:
        if key not in profile.questions:
            hint = did_you_mean(key, (*RESERVED, *profile.questions))
            raise SelectionError(
                SelectionReason.UNKNOWN_CHOICE,
                f"{profile.display_name} has nothing to choose by the name {shown(key)}. {hint}".rstrip(),
                field=key,
                allowed=profile.questions,
            )
    return picks, ()


def _lost(profile: Profile, key: str, pick: str) -> str:
    """Say what becomes of a saved pick that means nothing any more; empty for one that stays."""
    choice = profile.questions.get(key)
    if choice is None:
        return f"{shown(key)} can no longer be chosen."
    if pick in choice.options or (choice.custom is not None and pick.startswith(f"{CUSTOM}:")):
        return ""
    instead = choice.options[default_option(choice)].display_name
    return f"{choice.display_name}: {shown(pick)} is no longer offered, it starts with {instead}."


def _team(request: Request, teams: tuple[str, ...]) -> str | None:
    if request.team and request.team not in teams:
        raise SelectionError(
            SelectionReason.NOT_ALLOWED,
            f"You cannot book this on {shown(request.team)}.",
            field=TEAM,
            allowed=teams,
        )
    return request.team or (teams[0] if teams else None)
