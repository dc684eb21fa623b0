"""The command: finds the verb, runs it, prints its report, gives its exit status.

Shell: writes to the terminal. Verbs of other packages join by an entry point in the group
`gpu_workspaces.verbs`, so that this package need not know the services.
"""

import argparse
import importlib
import io
import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from types import ModuleType
from typing import Final, Protocol, cast

from ..errors import CatalogError, WorkspaceError
from .report import FAILED, Report, unreadable

VERBS: Final = {
    "validate": "hub_ext.cli.validate",
    "diff": "hub_ext.cli.diff",
    "render": "hub_ext.cli.render",
    "explain": "hub_ext.cli.explain",
    "import": "hub_ext.cli.import_values",
    "quota": "hub_ext.cli.quota",
    "phases": "hub_ext.cli.phases",
}
GROUP: Final = "gpu_workspaces.verbs"
INTERRUPTED: Final = 130
"""As a shell tells Ctrl-C."""

EPILOG: Final = """exit status: 0 all well, 1 there are findings, 2 the command could not do its work.
Warnings count as findings with --strict only."""


class Verb(Protocol):
    """What the module of a verb offers."""

    HELP: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's arguments."""

    def run(self, args: argparse.Namespace) -> Report:
        """Do the work."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `gpu-workspaces`; the result is its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _write_any_text()
    parser = build_parser(arguments)
    args = parser.parse_args(arguments)
    try:
        status = _do(cast("Verb", args.module), args)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _do(verb: Verb, args: argparse.Namespace) -> int:
    try:
        report = verb.run(args)
    except CatalogError as error:
        report = Report(findings=error.findings, text="", failed=unreadable(error.findings))
    except BrokenPipeError:
        raise
    except (WorkspaceError, OSError) as error:
        return _fail(args.verb, str(error), as_json=args.json)
    except RecursionError:
        return _fail(args.verb, "something that was given is nested too deeply", as_json=args.json)
    _print(args, report)
    return report.exit_status(strict=args.strict)


def _write_any_text() -> None:
    """Let output have characters that the terminal has not, and names of files that are no text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser; only the module of the verb that is asked for is loaded."""
    parser = argparse.ArgumentParser(
        prog="gpu-workspaces",
        description="Check, render and explain a catalog of JupyterHub workspaces.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    for name, module_name in _verbs().items():
        needed = asked is None or asked == name
        module = importlib.import_module(module_name) if needed else None
        help_text = _help(module, module_name)
        sub = subparsers.add_parser(
            name,
            help=help_text,
            description=help_text,
            epilog=EPILOG,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--json", action="store_true", help="print findings and result as JSON")
        sub.add_argument("--strict", action="store_true", help="let warnings fail the command too")
        if module is not None:
            cast("Verb", module).configure(sub)
            sub.set_defaults(module=module)
    return parser


def _verbs() -> dict[str, str]:
    return VERBS | {entry.name: entry.value for entry in entry_points(group=GROUP)}


def _help(module: ModuleType | None, module_name: str) -> str:
    return cast("Verb", module).HELP if module is not None else module_name


def _print(args: argparse.Namespace, report: Report) -> None:
    if args.json:
        print(json.dumps(report.as_dict(args.verb, strict=args.strict), indent=2, ensure_ascii=False))
        return
    for finding in report.findings:
        if finding.severity not in report.told:
            print(finding, file=sys.stderr)
    if report.text:
        print(report.text, end="" if report.text.endswith("\n") else "\n")


def _fail(verb: str, message: str, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"verb": verb, "status": FAILED, "error": message, "findings": []}, indent=2))
    else:
        print(f"gpu-workspaces {verb}: {message}", file=sys.stderr)
    return FAILED
