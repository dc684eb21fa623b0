"""What one user may start or see, with what is known about each: the page and the JSON are made of it.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any, Final

from ..catalog.compose import Workspace, combinations, compose
from ..catalog.model import Catalog, Profile
from ..errors import SelectionError, SelectionReason
from ..selection import Selection, locked, offers, select
from ..selection_access import Person, locked_text, paying_teams
from ..selection_input import PROFILE
from .entry import Entry
from .instead import with_alternatives
from .room import Look, Room, room_for, unknown
from .view import Notice, NoticeKind

_BAD_LINK: Final = "This link cannot be followed."
_NOTHING: Final = "No workspace is offered to you. Ask the administrator which team you should be in."
_NOTHING_NOW: Final = "None of your workspaces can be started at the moment. Each of them says why."


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a page is made for."""

    person: Person
    server_name: str
    today: date
    last: Mapping[str, Any]
    """Options of this server that were accepted before; empty for none."""
    link: Mapping[str, Any] | None = None
    """Options that the address carries."""
    refused: Mapping[str, Any] | None = None
    """Options that were just refused; the hub says why above the form."""
    hub_home: bool = False
    """The hub mounts a volume of its own in workspaces whose profile brings no home."""
    look: Look | None = None
    """Says what may be started now; None if nothing is known."""
    other_answers: bool = True
    """Whether to try other answers where what is filled in is refused, which takes longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All of it, in the order of the catalog."""

    entries: tuple[Entry, ...]
    notices: tuple[Notice, ...]
    unknown: str
    """What is not known about any of them; empty if nothing."""


def entries_for(catalog: Catalog, visit: Visit) -> Entries:
    """Collect all that a user may start or see, with their last choice, link or refused choice filled in."""
    chosen, notices = _preselect(catalog, visit)
    profiles = list(offers(catalog, visit.person, today=visit.today))
    if chosen is not None and chosen.workspace.profile.key not in {profile.key for profile in profiles}:
        profiles.append(chosen.workspace.profile)
    closed = locked(catalog, visit.person, today=visit.today)
    order = {profile.key: number for number, profile in enumerate(catalog.profiles)}
    found = []
    for profile in sorted([*profiles, *closed], key=lambda profile: order[profile.key]):
        mine = chosen if chosen is not None and chosen.workspace.profile.key == profile.key else None
        workspace = mine.workspace if mine else _preview(catalog, profile)
        if workspace is not None:
            found.append(_entry(catalog, workspace, visit, chosen=mine, closed=profile in closed))
    if not profiles:
        notices = (*notices, Notice(kind=NoticeKind.WARNING, text=_NOTHING))
    elif all(entry.room.refusal for entry in found):
        notices = (*notices, Notice(kind=NoticeKind.WARNING, text=_NOTHING_NOW))
    judged = (entry.room.stock for entry in found if not entry.closed)
    return Entries(entries=with_alternatives(found), notices=notices, unknown=unknown(visit.look, judged))


def _entry(
    catalog: Catalog, workspace: Workspace, visit: Visit, *, chosen: Selection | None, closed: bool
) -> Entry:
    profile = workspace.profile
    teams = paying_teams(profile, catalog, visit.person)
    team = chosen.team if chosen else next(iter(teams), None)
    room = Room()
    if closed:
        room = Room(refusal=locked_text(profile, catalog), reason=SelectionReason.NOT_ALLOWED)
    elif visit.look is not None:
        room = room_for(
            catalog,
            workspace,
            teams=teams,
            team=team or "",
            look=visit.look,
            others=visit.other_answers,
        )
    return Entry(
        workspace=workspace,
        chosen=chosen is not None and not room.refusal,
        teams=teams,
        team=team,
        room=room,
    )


def _preselect(catalog: Catalog, visit: Visit) -> tuple[Selection | None, tuple[Notice, ...]]:
    """Give the choice to fill in and what to say about it."""
    notices: list[Notice] = []
    if visit.link is not None and not visit.link.get(PROFILE):
        notices.append(Notice(kind=NoticeKind.WARNING, text=f"{_BAD_LINK} It names no workspace."))
    for options, opening in _candidates(visit):
        verdict = select(catalog, visit.person, options, today=visit.today, last=visit.last)
        if isinstance(verdict, Selection):
            if verdict.notice:
                notices.append(Notice(kind=NoticeKind.INFO, text=verdict.notice))
            return verdict, tuple(notices)
        if opening:
            notices.append(Notice(kind=NoticeKind.WARNING, text=f"{opening} {verdict.text}"))
    return None, tuple(notices)


def _candidates(visit: Visit) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Give what could be filled in, the first first, and how to begin the sentence if it cannot be."""
    if visit.refused is not None:
        yield visit.refused, ""
        for wrong in sorted(
            set(visit.refused) - {PROFILE}
        ):  # as a rule one answer is at fault: keep the others
            yield {key: value for key, value in visit.refused.items() if key != wrong}, ""
        yield {PROFILE: visit.refused.get(PROFILE)}, ""
    elif visit.link and visit.link.get(PROFILE):
        yield visit.link, _BAD_LINK
    if visit.last:
        yield visit.last, "Your last choice cannot be started again."
    yield {}, ""


def _preview(catalog: Catalog, profile: Profile) -> Workspace | None:
    """Give what the card shows before anything is picked; None if no combination of answers is possible."""
    # Lazily: a profile of three choices with ten answers each has a thousand combinations.
    for picks in chain([{}], combinations(profile)):
        try:
            return compose(catalog, profile, picks)
        except SelectionError:
            continue
    return None
