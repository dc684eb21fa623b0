"""`gpu-workspaces doctor`: why this workspace does not compute on its GPU, and who can mend it.

Shell: looks at this machine.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from hub_ext.cli.report import Report, table
from hub_ext.errors import Finding, Severity, WorkspaceError

from .facts import Facts, facts_from
from .judge import Health, Verdict, cause, diagnose
from .observe import observe
from .reasons import TEXTS

HELP = "say why this workspace does not compute on its GPU, and who can mend it"

SIGNS = {Health.WELL: "ok", Health.BROKEN: "BROKEN", Health.FOLLOWS: "-", Health.UNKNOWN: "?"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python", default="", help="interpreter whose frameworks are asked (that of kernels)"
    )
    parser.add_argument(
        "--facts", type=Path, metavar="FILE", help="judge what `--json` printed elsewhere, not this machine"
    )


def run(args: argparse.Namespace) -> Report:
    facts = read_facts(args.facts) if args.facts else observe(python=args.python)
    return report(facts, diagnose(facts))


def read_facts(path: Path) -> Facts:
    """Read what `doctor --json` printed, or the facts in it; raises `WorkspaceError`."""
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        return facts_from(written.get("result", written).get("facts", written))
    except (ValueError, TypeError, AttributeError) as error:
        raise WorkspaceError(f"{path}: not what `gpu-workspaces doctor --json` prints: {error}") from error


def report(facts: Facts, verdicts: tuple[Verdict, ...]) -> Report:
    """Tell the layers from the ground up, and the cause with its remedy."""
    broken = cause(verdicts)
    rows = [(SIGNS[one.health], one.layer.value, one.evidence) for one in verdicts]
    lines = [table([("", "layer", "seen"), *rows]), ""]
    findings = []
    if broken and broken.reason:
        told = TEXTS[broken.reason]
        lines += [told.sentence, f"Who can mend it: {told.who.value}. {told.remedy}"]
        findings.append(
            Finding(
                severity=Severity.ERROR,
                code=broken.reason.value,
                message=told.sentence,
                path=broken.layer.value,
                help=f"Who can mend it: {told.who.value}. {told.remedy}",
            )
        )
    else:
        unknown = [one.layer.value for one in verdicts if one.health is Health.UNKNOWN]
        lines.append(
            f"Nothing is broken; not looked at: {', '.join(unknown)}." if unknown else "All is well."
        )
    return Report(
        findings=findings,
        result={
            "cause": broken.reason.value if broken and broken.reason else None,
            "who": TEXTS[broken.reason].who.value if broken and broken.reason else None,
            "layers": [asdict(one) for one in verdicts],
            "facts": asdict(facts),
        },
        text="\n".join(lines),
        told=frozenset(Severity),
    )
