"""Reading catalogs and the facts about a user from the command line.

Shell: reads files and today's date.
"""

import argparse
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ..catalog.source import merge, read_path
from ..errors import WorkspaceError
from ..selection_access import Person
from ..selection_input import PROFILE, TEAM, VERSION


class UsageError(WorkspaceError):
    """The command line does not make sense as a whole."""


def add_catalog(parser: argparse.ArgumentParser, name: str = "catalog") -> None:
    """Add the argument that names a catalog."""
    parser.add_argument(
        name,
        metavar=name.upper(),
        type=Path,
        help="a file, a folder of files, or chart values with the catalog under custom.gpuWorkspaces",
    )


def add_person(parser: argparse._ActionsContainer) -> None:
    """Add the arguments that say who asks, and for what."""
    parser.add_argument("--user", help="user name, as the hub spells it")
    parser.add_argument(
        "--groups", default="", metavar="A,B", help="groups of the user, as the hub spells them"
    )
    parser.add_argument("--team", default="", help="team to book on, where the user has several")
    parser.add_argument("--profile", default="", metavar="NAME[@VERSION]", help="profile, or an alias of one")
    parser.add_argument(
        "--choice",
        action="append",
        default=[],
        metavar="QUESTION=ANSWER",
        help="an answer to one of the profile's choices; may be repeated",
    )
    add_day(parser)


def add_day(parser: argparse._ActionsContainer) -> None:
    """Add the argument that says which day it is: versions end on one."""
    parser.add_argument(
        "--on", type=date.fromisoformat, metavar="DATE", help="judge as of this day (default: today)"
    )


def person_of(args: argparse.Namespace) -> Person:
    """Give the user that the arguments describe.

    Raises
    ------
    UsageError
        No user was named.
    """
    if not args.user:
        raise UsageError("say who asks: --user NAME, and --groups A,B if it matters")
    groups = (group.strip() for group in args.groups.split(","))
    return Person(name=args.user, groups=frozenset(group for group in groups if group))


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Give the choice as the hub would keep it in `user_options`.

    Raises
    ------
    UsageError
        A choice is not of the form ``question=answer``.
    """
    name, _, version = args.profile.partition("@")
    options: dict[str, Any] = {PROFILE: name, VERSION: version, TEAM: args.team}
    options = {key: value for key, value in options.items() if value}
    for text in args.choice:
        question, equals, answer = text.partition("=")
        if not equals or not question:
            raise UsageError(f"--choice {text}: write QUESTION=ANSWER, such as --choice image=pytorch")
        options[question] = answer
    return options


def day_of(args: argparse.Namespace) -> date:
    """Give the day that the judgement is for."""
    return args.on or datetime.now(tz=UTC).date()


def read_source(path: Path) -> Mapping[str, Any]:
    """Give a catalog as it is written, all its files as one mapping; it must have loaded without error."""
    return merge(read_path(path)).data
