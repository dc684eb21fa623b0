"""Who may start what: the catalog's access rules applied to one user's current groups.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from .catalog.compose import CUSTOM, combinations, default_option
from .catalog.expand import IMAGE_CHOICE
from .catalog.model import Access, Catalog, Choice, Option, Profile, State
from .quota.words import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user as the hub knows them at this moment."""

    name: str
    groups: frozenset[str] = frozenset()


def teams_of(catalog: Catalog, person: Person) -> tuple[str, ...]:
    """Name the teams that a user is in, in the catalog's order."""
    return tuple(
        key
        for key, team in catalog.teams.items()
        if person.name in team.users or not person.groups.isdisjoint(team.groups)
    )


def is_allowed(access: Access | None, catalog: Catalog, person: Person) -> bool:
    """Say whether one of the lists names the user; no rule at all lets everyone in."""
    if access is None or access.everyone:
        return True
    return (
        person.name in access.users
        or not person.groups.isdisjoint(access.groups)
        or not set(access.teams).isdisjoint(teams_of(catalog, person))
    )


def paying_teams(profile: Profile, catalog: Catalog, person: Person) -> tuple[str, ...]:
    """Name the teams that a workspace can be booked on: those it is offered to, else all of the user's."""
    mine = teams_of(catalog, person)
    named = profile.access.teams if profile.access else ()
    return tuple(team for team in mine if team in named) or mine


def offered_to(profile: Profile, catalog: Catalog, person: Person) -> Profile | None:
    """Give the profile as this user sees it: without options that are not theirs.

    None if the profile is not theirs, or if a question is left without an answer.
    """
    if not is_allowed(profile.access, catalog, person):
        return None
    questions = {key: _narrow(choice, catalog, person) for key, choice in profile.questions.items()}
    if any(not choice.options for choice in questions.values()):
        return None
    if all(questions[key] is choice for key, choice in profile.questions.items()):
        return profile
    return _reachable(profile.model_copy(update={"choices": questions}))


def _narrow(choice: Choice, catalog: Catalog, person: Person) -> Choice:
    if all(option.access is None for option in choice.options.values()):
        return choice
    mine = {key for key, option in choice.options.items() if is_allowed(option.access, catalog, person)}
    return _keep(choice, mine)


def _keep(choice: Choice, keys: Set[str]) -> Choice:
    options = {key: option for key, option in choice.options.items() if key in keys}
    if len(options) == len(choice.options):
        return choice
    default = default_option(choice)
    return choice.model_copy(update={"options": options, "default": default if default in options else None})


def _reachable(profile: Profile) -> Profile | None:
    """Take out options that go only with what is not the user's; None if nothing can be combined.

    `check_reachable` bounds the number of combinations, and finds such options where they are nobody's.
    """
    questions = profile.questions
    if not any(option.requires for choice in questions.values() for option in choice.options.values()):
        return profile
    reached: set[tuple[str, str]] = set()
    for picks in combinations(_with_typed(profile)):
        reached.update(picks.items())
    kept = {
        name: _keep(choice, {key for key in choice.options if (name, key) in reached})
        for name, choice in questions.items()
    }
    if any(not choice.options for choice in kept.values()):
        return None
    return profile.model_copy(update={"choices": kept})


def _with_typed(profile: Profile) -> Profile:
    """Add an option that stands for any typed image, where one may be typed."""
    choice = profile.questions.get(IMAGE_CHOICE)
    if choice is None or choice.custom is None:
        return profile
    options = {**choice.options, f"{CUSTOM}:": Option(display_name=CUSTOM)}
    typed = choice.model_copy(update={"options": options})
    return profile.model_copy(update={"choices": {**profile.questions, IMAGE_CHOICE: typed}})


def locked_text(profile: Profile, catalog: Catalog) -> str:
    """Say for whom a profile is that others may see; empty for one that they may not.

    Teams are named as users read them. Groups and users are not: who is in them is nobody's business.
    """
    access = profile.access
    if access is None or not access.show_to_others:
        return ""
    titles = [catalog.teams[team].display_name or team for team in access.teams]
    if not titles:
        return f"{profile.display_name} is not open to you. Ask the administrator."
    return f"{profile.display_name} is for members of {listed(titles)}. Ask the administrator to be added."


def sees_everything(catalog: Catalog, person: Person) -> bool:
    """Say whether nothing in the catalog is kept from this user, so that no refusal can give a name away."""
    return all(
        offered_to(profile, catalog, person) is profile or locked_text(profile, catalog)
        for profile in catalog.profiles
        if profile.state is not State.RETIRED
    )
