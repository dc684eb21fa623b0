"""The spawn page of one user: which cards, which one is preselected, and what to say above them.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any, Final

from ..catalog.compose import CUSTOM, Workspace, combinations, compose
from ..catalog.expand import IMAGE_CHOICE
from ..catalog.model import Catalog, Choice, Option, Profile
from ..catalog.versions import lifetime_notice
from ..errors import SelectionError
from ..render.storage import UserFacts
from ..selection import Selection, locked, offers, select
from ..selection_access import Person, locked_text, paying_teams
from ..selection_input import PROFILE, TEAM
from . import facts
from .room import Look, Room, room_for, unknown
from .view import Answer, Card, Group, Notice, NoticeKind, Page, Question, TypedAnswer

_BAD_LINK: Final = "This link cannot be followed."


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


def build_page(catalog: Catalog, visit: Visit) -> Page:
    """Lay out everything that a user may start, with their last choice, link or refused choice filled in."""
    chosen, notices = _preselect(catalog, visit)
    profiles = list(offers(catalog, visit.person, today=visit.today))
    if chosen is not None and chosen.workspace.profile.key not in {profile.key for profile in profiles}:
        profiles.append(chosen.workspace.profile)
    groups: dict[str, list[Card]] = {}
    order = {profile.key: number for number, profile in enumerate(catalog.profiles)}
    closed = locked(catalog, visit.person, today=visit.today)
    reasons = {profile.key: locked_text(profile, catalog) for profile in closed}
    for profile in sorted([*profiles, *closed], key=lambda profile: order[profile.key]):
        mine = chosen if chosen is not None and chosen.workspace.profile.key == profile.key else None
        workspace = mine.workspace if mine else _preview(catalog, profile)
        if workspace is not None:
            card = _card(catalog, workspace, visit, chosen=mine, refusal=reasons.get(profile.key, ""))
            groups.setdefault(profile.category or facts.kind(workspace), []).append(card)
    if not profiles:
        text = "No workspace is offered to you. Ask the administrator which team you should be in."
        notices = (*notices, Notice(kind=NoticeKind.WARNING, text=text))
    shown = chain.from_iterable(groups.values())
    return Page(
        notices=notices,
        unknown=unknown(visit.look, (card.stock for card in shown if card.value not in _values(closed))),
        groups=tuple(Group(title=title, cards=tuple(cards)) for title, cards in groups.items()),
    )


def _values(profiles: Iterable[Profile]) -> frozenset[str]:
    return frozenset(profile.label for profile in profiles)


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


def _card(
    catalog: Catalog, workspace: Workspace, visit: Visit, *, chosen: Selection | None, refusal: str
) -> Card:
    profile = workspace.profile
    teams = paying_teams(profile, catalog, visit.person)
    team = chosen.team if chosen else next(iter(teams), None)
    user = UserFacts(name=visit.person.name, team=team, server_name=visit.server_name)
    room = Room(refusal=refusal)
    if visit.look is not None and not refusal:
        room = room_for(catalog, profile, workspace, teams=teams, team=team or "", look=visit.look)
    return Card(
        value=profile.label,
        title=profile.display_name,
        description=profile.description,
        specs=facts.specs(workspace),
        price=facts.price(workspace.price),
        bar=facts.bar(workspace),
        checked=chosen is not None and not room.refusal,
        refusal=room.refusal,
        caution=room.caution,
        room=room.parts,
        stock=room.stock,
        warning=lifetime_notice(profile),
        sharing=facts.sharing(workspace),
        questions=(*_questions(workspace), *_team_question(catalog, profile, teams, team=team)),
        stays=tuple(facts.stays(workspace, user, hub_home=visit.hub_home)),
        goes=tuple(facts.goes(workspace, hub_home=visit.hub_home)),
        session=tuple(facts.session(workspace.session)),
    )


def _questions(workspace: Workspace) -> Iterator[Question]:
    profile = workspace.profile
    if IMAGE_CHOICE not in profile.questions:
        answer = Answer(value="", label=workspace.image.display_name)
        yield Question(key="", field="", label="Image", help=workspace.image.description, answers=(answer,))
    for key, choice in profile.questions.items():
        yield _question(profile, key, choice, pick=workspace.picks[key])


def _team_question(
    catalog: Catalog, profile: Profile, teams: tuple[str, ...], *, team: str | None
) -> Iterator[Question]:
    if len(teams) < 2:
        return
    answers = (
        Answer(value=key, label=catalog.teams[key].display_name or key, selected=key == team) for key in teams
    )
    yield Question(
        key=TEAM,
        field=f"{profile.label}.{TEAM}",
        label="Team",
        help="Whose quota and cost center it is booked on.",
        answers=tuple(answers),
    )


def _question(profile: Profile, key: str, choice: Choice, *, pick: str) -> Question:
    field = f"{profile.label}.{key}"
    typed = pick.removeprefix(f"{CUSTOM}:") if pick not in choice.options else ""
    answers = [
        Answer(
            value=name,
            label=_label(option),
            selected=name == pick,
            requires=json.dumps(option.requires, sort_keys=True) if option.requires else "",
        )
        for name, option in choice.options.items()
    ]
    typed_answer = None
    if choice.custom is not None:
        answers.append(Answer(value=f"{CUSTOM}:", label=choice.custom.display_name, selected=bool(typed)))
        typed_answer = TypedAnswer(
            field=f"{field}:{CUSTOM}",
            label=choice.custom.display_name,
            value=typed,
            help=choice.custom.help or f"From {' or '.join(choice.custom.registries)}.",
        )
    return Question(
        key=key,
        field=field,
        label=choice.display_name,
        help=choice.description,
        answers=tuple(answers),
        typed=typed_answer,
    )


def _label(option: Option) -> str:
    """Write an answer with its price, and with the size that it changes unless its name says one."""
    told = [facts.price(option.price)]
    if not any(char.isdigit() for char in option.display_name):
        change = option.resources
        sizes = (
            facts.cpu(change.cpu) if change.cpu else "",
            facts.memory(change.memory) if change.memory else "",
        )
        told = [*sizes, *told]
    extra = ", ".join(part for part in told if part)
    return f"{option.display_name} ({extra})" if extra else option.display_name
