"""`gpu-workspaces explain`: what a user would get, and why not something else.

Shell: reads files.
"""

import argparse

from ..catalog.load import load_catalog
from ..catalog.model import Catalog
from ..catalog.source import merge, read_path
from ..errors import Finding, Severity
from ..render.storage import UserFacts
from ..selection import Refusal, Selection, select
from ..selection_access import Person, teams_of
from .catalogs import add_catalog, add_person, day_of, options_of, person_of
from .explanation import Line, Verdict, as_data, lines, options, profiles
from .report import Report, table

HELP = "say what a user would get, where each value comes from, and what is refused and why"


def configure(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    add_person(parser)
    parser.add_argument("--server", default="", help="name of a named server")


def run(args: argparse.Namespace) -> Report:
    catalog, person = load_catalog(args.catalog), person_of(args)
    offered = profiles(catalog, person, today=day_of(args))
    if not args.profile:
        return _overview(catalog, person, offered)
    selection = select(catalog, person, options_of(args), today=day_of(args))
    if isinstance(selection, Refusal):
        return _refused(person, selection, offered)
    user = UserFacts(name=person.name, team=selection.team, server_name=args.server)
    what = lines(catalog, merge(read_path(args.catalog)), selection, user)
    return _explained(selection, what, options(catalog, selection, person))


def _overview(catalog: Catalog, person: Person, offered: list[Verdict]) -> Report:
    teams = ", ".join(teams_of(catalog, person)) or "no team"
    text = f"{person.name} is in {teams}.\n\n{_verdicts(offered)}"
    return Report(result={"profiles": as_data(offered)}, text=text)


def _refused(person: Person, refusal: Refusal, offered: list[Verdict]) -> Report:
    finding = Finding(severity=Severity.ERROR, code=refusal.reason, message=refusal.text)
    result = {"refusal": {"reason": refusal.reason, "text": refusal.text}, "profiles": as_data(offered)}
    text = f"{person.name} would be refused. What there is:\n\n{_verdicts(offered)}"
    return Report(findings=[finding], result=result, text=text)


def _explained(selection: Selection, what: list[Line], others: list[Verdict]) -> Report:
    rows = [(line.topic, line.value, line.origin) for line in what]
    text = "\n".join(_wrapped(rows))
    if others:
        text += f"\n\nOther answers:\n\n{_verdicts(others)}"
    result = {"selection": selection.options, "team": selection.team, "lines": as_data(what)}
    return Report(result=result | {"options": as_data(others)}, text=text)


def _wrapped(rows: list[tuple[str, str, str]]) -> list[str]:
    """Write topic and value, with the origin below where it changes."""
    width = max((len(topic) for topic, _, _ in rows), default=0)
    result, said = [], ""
    for topic, value, origin in rows:
        result.append(f"{topic.ljust(width)}  {value}")
        if origin != said:
            result.append(f"{''.ljust(width)}    from {origin}")
        said = origin
    return result


def _verdicts(verdicts: list[Verdict]) -> str:
    rows = [("yes" if v.offered else "no", v.name, v.title, v.reason) for v in verdicts]
    return table(rows) if rows else "There is nothing."
