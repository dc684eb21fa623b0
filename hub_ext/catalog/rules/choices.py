"""Choices: all options can be reached, and what is preselected goes together.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..choices import Choice
from ..codes import Code
from ..compose import combinations, default_option, unmet
from ..expand import IMAGE_CHOICE
from ..model import Profile
from ..problems import Loc, Problem
from .context import MOST_COMBINATIONS, Context, too_many

RESERVED: Final = {"profile", "version", "team"}
"""Keys of the user's options that mean something else."""


def check_names(context: Context) -> Iterator[Problem]:
    """Names of choices, and what only the choice of images may have."""
    for loc, profile in context.written_profiles():
        for key in profile.choices:
            if key in RESERVED:
                yield Problem(
                    code=Code.CHOICE_RESERVED,
                    message=f"{key!r} means something else in the user's options",
                    loc=(*loc, "choices", key),
                    help="Give the choice another name.",
                )
        if IMAGE_CHOICE in profile.choices and len(profile.images) > 1:
            yield Problem(
                code=Code.CHOICE_IMAGES,
                message=f"{profile.label} has several images and a choice named {IMAGE_CHOICE!r}",
                loc=(*loc, "choices", IMAGE_CHOICE),
                help="Keep one image in images, and write the others as options with image: ….",
            )
    for loc, profile in context.profiles():
        for key, choice in profile.questions.items():
            if choice.custom is not None and key != IMAGE_CHOICE:
                yield Problem(
                    code=Code.CUSTOM_IMAGE_PLACE,
                    message=f"a typed image belongs to the choice named {IMAGE_CHOICE!r}, not {key!r}",
                    loc=(*loc, "choices", key),
                    help=f"Name the choice {IMAGE_CHOICE}.",
                )


def check_reachable(context: Context) -> Iterator[Problem]:
    """Options that nobody can ever pick, and a preselection that is refused."""
    for loc, profile in context.profiles():
        questions = profile.questions
        if too_many(profile):
            yield Problem(
                code=Code.TOO_MANY_COMBINATIONS,
                message=f"{profile.label} has more than {MOST_COMBINATIONS} combinations of options",
                loc=(*loc, "choices"),
                help="Make several profiles of it, or fewer options.",
            )
            continue
        if not any(option.requires for choice in questions.values() for option in choice.options.values()):
            continue
        reached = {(name, pick) for picks in combinations(profile) for name, pick in picks.items()}
        for name, choice in questions.items():
            for key in choice.options:
                if (name, key) not in reached:
                    yield Problem(
                        code=Code.OPTION_UNREACHABLE,
                        message=f"{profile.label}: nothing goes with {name}={key}",
                        loc=(*loc, "choices", name, "options", key),
                        help="Look at requires on both sides.",
                    )
        picked = {name: default_option(choice) for name, choice in questions.items()}
        if any(pick not in questions[name].options for name, pick in picked.items()):
            continue  # said by the references
        conflicts = list(_conflicts(profile, picked))
        yield from (_conflict(profile, picked, loc, name, other) for name, other in conflicts)
        if not conflicts:
            picked = _open_picks(profile)
            for name, other in _conflicts(profile, picked):
                yield _conflict(
                    profile, picked, loc, name, other, who=" for users without access to all options"
                )


def _conflicts(profile: Profile, picked: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Give pairs of choices whose picks do not go together."""
    for name, pick in picked.items():
        if other := unmet(profile, picked, profile.questions[name].options[pick]):
            yield name, other


def _open_picks(profile: Profile) -> dict[str, str]:
    """Give what is preselected for somebody to whom no option with an access rule is open.

    Options that go only with those that are not open are not shown to them either. Empty if a question would
    have no answer: the profile is not offered to them then.
    """
    questions = {name: _open_part(choice) for name, choice in profile.questions.items()}
    reached: dict[str, set[str]] = {name: set() for name in questions}
    for picks in combinations(profile.model_copy(update={"choices": questions})):
        for name, pick in picks.items():
            reached[name].add(pick)
    picked: dict[str, str] = {}
    for name, choice in questions.items():
        mine = [key for key in choice.options if key in reached[name]]
        if not mine:
            return {}
        default = default_option(profile.questions[name])
        picked[name] = default if default in mine else mine[0]
    return picked


def _open_part(choice: Choice) -> Choice:
    rules = {key: option.access for key, option in choice.options.items()}
    mine = {key for key, access in rules.items() if access is None or access.everyone}
    options = {key: option for key, option in choice.options.items() if key in mine}
    return choice.model_copy(update={"options": options})


def _conflict(
    profile: Profile, picked: Mapping[str, str], loc: Loc, name: str, other: str, *, who: str = ""
) -> Problem:
    return Problem(
        code=Code.DEFAULTS_CONFLICT,
        message=f"{profile.label}: the preselected {name}={picked[name]} does not go with "
        f"{other}={picked.get(other, profile.images[0])}{who}",
        loc=(*loc, "choices", name),
        help="Write default in one of the choices.",
    )
