"""The spawn page of one user: which cards, which one is preselected, and what to say above them.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..catalog.compose import CUSTOM, Workspace
from ..catalog.expand import IMAGE_CHOICE
from ..catalog.model import Catalog, Choice, Option, Profile
from ..render.storage import UserFacts
from ..selection_input import TEAM
from . import facts
from .entries import Visit, entries_for
from .entry import Entry
from .view import Answer, Card, Group, Page, Question, TypedAnswer


def build_page(catalog: Catalog, visit: Visit) -> Page:
    """Lay out everything that a user may start, with their last choice, link or refused choice filled in."""
    found = entries_for(catalog, visit)
    groups: dict[str, list[Card]] = {}
    for entry in found.entries:
        groups.setdefault(entry.group, []).append(_card(catalog, entry, visit))
    return Page(
        server=visit.server_name,
        notices=found.notices,
        unknown=found.unknown,
        groups=tuple(Group(title=title, cards=tuple(cards)) for title, cards in groups.items()),
    )


def _card(catalog: Catalog, entry: Entry, visit: Visit) -> Card:
    workspace, room = entry.workspace, entry.room
    profile = workspace.profile
    user = UserFacts(name=visit.person.name, team=entry.team, server_name=visit.server_name)
    return Card(
        value=profile.label,
        title=profile.display_name,
        description=profile.description,
        specs=facts.specs(workspace),
        price=facts.price(workspace.price),
        bar=facts.bar(workspace),
        checked=entry.chosen,
        refusal=room.refusal,
        caution=room.caution,
        room=room.parts,
        stock=room.stock,
        warning=entry.warning,
        sharing=facts.sharing(workspace),
        questions=questions(catalog, entry),
        stays=tuple(facts.stays(workspace, user, hub_home=visit.hub_home)),
        goes=tuple(facts.goes(workspace, hub_home=visit.hub_home)),
        session=tuple(facts.session(workspace.session)),
    )


def questions(catalog: Catalog, entry: Entry) -> tuple[Question, ...]:
    """List what there is to choose; what has a single answer is among them."""
    found = _questions(entry.workspace)
    return (*found, *_team_question(catalog, entry.workspace.profile, entry.teams, team=entry.team))


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
        mark = f"{CUSTOM}:"
        answers.append(Answer(value=mark, label=choice.custom.display_name, selected=bool(typed)))
        typed_answer = TypedAnswer(
            mark=mark,
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
    change = option.resources
    if option.price is None and change.cpu is None and change.memory is None:
        return option.display_name
    told = [facts.price(option.price)]
    if not any(char.isdigit() for char in option.display_name):
        sizes = (
            facts.cpu(change.cpu) if change.cpu else "",
            facts.memory(change.memory) if change.memory else "",
        )
        told = [*sizes, *told]
    extra = ", ".join(part for part in told if part)
    return f"{option.display_name} ({extra})" if extra else option.display_name
