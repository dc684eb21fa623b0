"""`gpu-workspaces validate`: every mistake of a catalog at once.

Shell: reads files.
"""

import argparse
from collections import Counter
from collections.abc import Sequence

from ..catalog.load import examine
from ..catalog.model import Catalog
from ..errors import Finding, Severity
from .catalogs import add_catalog
from .report import Report, count, unreadable

HELP = "check a catalog and say everything that is wrong with it"


def configure(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)


def run(args: argparse.Namespace) -> Report:
    examination = examine(args.catalog)
    findings, catalog = examination.findings, examination.catalog
    told = _tally(findings)
    if catalog is None:
        return Report(findings=findings, text=f"{args.catalog}: {told}", failed=unreadable(findings))
    return Report(
        findings=findings, result=_summary(catalog), text=f"{args.catalog}: {_sentence(catalog)}; {told}"
    )


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
