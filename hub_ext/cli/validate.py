"""`gpu-workspaces validate`: every mistake of a catalog at once.

Shell: reads files, and writes the lock where asked to.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..catalog.load import examine, lock_path
from ..catalog.lock import FILE_NAME, format_lock, parse_lock, publish
from ..catalog.model import Catalog
from ..errors import Finding, Severity
from .catalogs import add_catalog
from .files import read_text
from .report import Report, count, unreadable

HELP = "check a catalog and say everything that is wrong with it"


def configure(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    parser.add_argument(
        "--publish",
        action="store_true",
        help=f"record the versions in {FILE_NAME} beside the catalog; they must not change from then on",
    )


def run(args: argparse.Namespace) -> Report:
    examination = examine(args.catalog)
    findings, catalog = examination.findings, examination.catalog
    told = _tally(findings)
    if catalog is None:
        return Report(findings=findings, text=f"{args.catalog}: {told}", failed=unreadable(findings))
    if args.publish:
        told += f"; {_publish(args.catalog, catalog)}"
    return Report(
        findings=findings, result=_summary(catalog), text=f"{args.catalog}: {_sentence(catalog)}; {told}"
    )


def _publish(path: Path, catalog: Catalog) -> str:
    file = lock_path(path)
    lock = parse_lock(read_text(file)) if file.exists() else {}
    published = publish(catalog, lock)
    file.write_text(format_lock(published), encoding="utf-8")
    return f"{file}: {count(len(published) - len(lock), 'version')} more published"


def _tally(findings: Sequence[Finding]) -> str:
    numbers = Counter(finding.severity for finding in findings)
    told = [count(numbers[severity], severity.value) for severity in Severity if numbers[severity]]
    return ", ".join(told) or "nothing to say against it"


def _summary(catalog: Catalog) -> dict[str, int]:
    return {
        "profiles": len({profile.name for profile in catalog.profiles}),
        "versions": len(catalog.profiles),
        "images": len(catalog.images),
        "pools": len(catalog.pools),
        "teams": len(catalog.teams),
    }


def _sentence(catalog: Catalog) -> str:
    states = Counter(profile.state.value for profile in catalog.profiles)
    versions = ", ".join(f"{number} {state}" for state, number in states.items())
    parts = [count(number, noun[:-1]) for noun, number in _summary(catalog).items() if noun != "versions"]
    return f"{', '.join(parts)} ({versions})"
