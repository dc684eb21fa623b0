"""`gpu-workspaces diff`: what users will notice when one catalog takes the place of another.

Shell: reads files.
"""

import argparse

from ..catalog.diff.catalogs import diff
from ..catalog.diff.report import markdown, plain
from ..catalog.load import load_catalog
from ..errors import Severity
from .catalogs import add_catalog, add_day, day_of
from .report import Report

HELP = "say what users will notice when NEW takes the place of OLD"


def configure(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser, "old")
    add_catalog(parser, "new")
    parser.add_argument("--markdown", action="store_true", help="write for a pull request")
    add_day(parser)


def run(args: argparse.Namespace) -> Report:
    changes = diff(load_catalog(args.old), load_catalog(args.new), today=day_of(args))
    findings = [change.finding() for change in changes]
    text = markdown(changes) if args.markdown else plain(changes) or "Users will notice nothing."
    return Report(findings=findings, text=text, told=frozenset(Severity))
