"""`gpu-workspaces import`: a draft catalog from a KubeSpawner profile list.

Shell: reads files, and writes one where asked to.
"""

import argparse
from pathlib import Path

from ..catalog.load import examine
from ..errors import Finding, Severity
from ..importer.compare import differences
from ..importer.draft import Draft, import_values
from ..render.documents import to_yaml
from .files import read_text
from .report import Report, count, unreadable

HELP = "make a draft catalog of the profile list in a hub's values"

HEADER = "# Draft of a catalog. Look at every line that `gpu-workspaces import` had something to say about,\n"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "values",
        nargs="+",
        metavar="VALUES",
        type=Path,
        help="values of the chart, or a file with a profile_list; later files win, as with helm -f",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write here, not to standard output"
    )
    parser.add_argument("--image", metavar="REF", help="what the hub runs where nothing names an image")


def run(args: argparse.Namespace) -> Report:
    texts = [(str(path), read_text(path)) for path in args.values]
    draft = import_values(texts, image=args.image)
    findings = (*draft.findings, *_checked(draft))
    if not draft.catalog:
        return Report(findings=findings, failed=unreadable(findings))
    text = f"{HEADER}# and run `gpu-workspaces validate` on it.\n{to_yaml(draft.catalog)}"
    if args.output is not None:
        args.output.write_text(text, encoding="utf-8")
        number = sum(finding.severity is not Severity.NOTE for finding in findings)
        profiles = count(len(draft.catalog["profiles"]), "profile")
        text = f"{args.output}: {profiles}, {count(number, 'thing')} to look at"
    return Report(findings=findings, result={"catalog": draft.catalog}, text=text)


def _checked(draft: Draft) -> tuple[Finding, ...]:
    """Say what is wrong with the draft as a catalog, or in what its pods differ."""
    if not draft.catalog:
        return ()
    examination = examine(draft.catalog)
    if examination.catalog is None:
        return examination.errors
    return differences(examination.catalog, draft.combinations)
