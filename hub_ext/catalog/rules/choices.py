"""Choices: all options can be reached, and what is preselected goes together.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..codes import Code
from ..compose import combinations, default_option, unmet
from ..expand import IMAGE_CHOICE
from ..problems import Problem
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
        for name, pick in picked.items():
            other = unmet(profile, picked, questions[name].options[pick])
            if other:
                yield Problem(
                    code=Code.DEFAULTS_CONFLICT,
                    message=f"{profile.label}: the preselected {name}={pick} does not go with "
                    f"{other}={picked.get(other, profile.images[0])}",
                    loc=(*loc, "choices", name),
                    help="Write default in one of the choices.",
                )
