"""`gpu-workspaces handoff`: one's runs, from a terminal; and what needs no service (`offline`).

Shell: reads and writes files, talks to the service.
"""

from __future__ import annotations

import argparse
import importlib
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.report import Report, table
from hub_ext.errors import Finding, Severity

from .client import ENDED, Client, RefusedError, names_of
from .verb_run import refused, watch

HELP = "look at your runs, end them, bring their results; or check manifests of runs"
OFFLINE: Final = ("check", "place")
DONE: Final = ".fetched"
"""File in the folder of a run whose results have all been brought."""


def configure(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    acts.add_parser("list", help="your runs, the newest first")
    for name, text in (
        ("show", "how a run stands"),
        ("log", "what a run said"),
        ("cancel", "end a run, or remove a schedule; its runs go on"),
        ("retry", "do a run again, from its checkpoints"),
        ("remove", "remove a run that has ended, with its results, log and checkpoints"),
    ):
        acts.add_parser(name, help=text).add_argument("run")
    acts.choices["log"].add_argument("--follow", action="store_true", help="until the run has ended")
    fetch = acts.add_parser("fetch", help="bring results into the home; what is there is never overwritten")
    fetch.add_argument("runs", nargs="*", metavar="RUN")
    fetch.add_argument("--finished", action="store_true", help="of all runs that have ended")
    fetch.add_argument("--to", type=Path, default=Path.home() / "runs", metavar="FOLDER")
    place = acts.add_parser("place", help="render the namespace of runs with its account and its rules")
    place.add_argument("config", type=Path, metavar="SETTINGS", help="the service's settings")
    check = acts.add_parser("check", help="judge manifests of runs against queues, without a cluster")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE")
    check.add_argument("--queue", type=Path, metavar="FILE", help="ClusterQueue and ResourceFlavors")
    check.add_argument(
        "--exclude", action="append", default=[], metavar="PREFIX", help="as Kueue is configured"
    )
    for act in acts.choices.values():  # also behind the word, where it is looked for
        act.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        act.add_argument(
            "--strict", action="store_true", default=argparse.SUPPRESS, help="let warnings fail too"
        )


def run(args: argparse.Namespace) -> Report:
    if args.act in OFFLINE:
        # A workspace has neither the cluster's nor the hub's libraries, and needs them for nothing else.
        offline = importlib.import_module(".offline", __package__)
        report: Report = getattr(offline, args.act)(args)
        return report
    try:
        with Client.from_environment() as client:
            return _ACTS[args.act](client, args)
    except RefusedError as error:
        return refused(error.reason, error.message, path=error.field, help=error.help)


def _list(client: Client, _args: argparse.Namespace) -> Report:
    runs = client.get("api/runs")["runs"]
    rows = [(one["id"], one["status"]["phase"], one["title"], one["status"]["text"]) for one in runs]
    text = table([("run", "phase", "name", "how it stands"), *rows]) if rows else "You have no runs."
    return Report(result=runs, text=text)


def _show(client: Client, args: argparse.Namespace) -> Report:
    seen = client.get(f"api/runs/{args.run}")
    steps = [(step["at"], step["text"]) for step in seen["steps"]]
    text = f"{seen['title']}: {seen['status']['text']}\n{_next(seen)}{table(steps)}"
    return Report(result=seen, text=text)


def _next(seen: Mapping[str, Any]) -> str:
    """Say when a schedule starts next on the clock of this terminal; its own is in the sentence about it."""
    if not seen.get("next"):
        return ""
    return f"Next start: {datetime.fromisoformat(seen['next']).astimezone():%Y-%m-%d %H:%M %Z} here.\n"


def _log(client: Client, args: argparse.Namespace) -> Report:
    if args.follow:
        return watch(client, args.run)
    text = client.text(f"api/runs/{args.run}/log", lines="5000")
    return Report(result={"log": text}, text=text)


def _cancel(client: Client, args: argparse.Namespace) -> Report:
    seen = client.post(f"api/runs/{args.run}/cancel", {})
    return Report(result=seen, text=seen["status"]["text"])


def _retry(client: Client, args: argparse.Namespace) -> Report:
    answer = client.post(f"api/runs/{args.run}/retry", {"key": secrets.token_hex(16)})
    return Report(result=answer, text=f"Submitted as {answer['id']}. {answer['forecast']['text']}")


def _remove(client: Client, args: argparse.Namespace) -> Report:
    gone = client.delete(f"api/runs/{args.run}")
    return Report(result=gone, text=f"Removed {gone['files']} files.")


def _fetch(client: Client, args: argparse.Namespace) -> Report:
    names = list(args.runs)
    if args.finished:
        runs = client.get("api/runs")["runs"]
        names += [one["id"] for one in runs if one["status"]["phase"] in ENDED]
    if not names and not args.finished:
        raise UsageError("say which runs, or --finished")
    brought: list[str] = []
    findings: list[Finding] = []
    for name in dict.fromkeys(names):
        if (args.to / name / DONE).exists():
            continue
        if client.get(f"api/runs/{name}")["status"]["phase"] not in ENDED:
            findings.append(_not_ended(name))
            continue
        files, missing = _bring(client, name, args.to / name)
        brought += files
        findings += missing
    return Report(findings=findings, result={"files": brought}, text="\n".join(brought) or "Nothing new.")


def _not_ended(run: str) -> Finding:
    return Finding(
        severity=Severity.WARNING,
        code="not-ended",
        message=f"{run} has not ended: what it has made so far can still change",
        help="Its page has the files of this moment.",
    )


def _bring(client: Client, run: str, folder: Path) -> tuple[list[str], list[Finding]]:
    """Bring the results of a run that are not there; a file of that name is the user's, whatever is in it."""
    brought: list[str] = []
    missing: list[Finding] = []
    for name in names_of(client.get(f"api/runs/{run}/files")):
        target = folder / name
        try:
            if folder.resolve() not in target.resolve().parents or target.exists():
                continue
            client.download(run, name, target)
        except OSError as error:  # such as a name that is too long here, or that a folder has by now
            message = f"{name[:200]} of {run} could not be brought: {error.strerror or error}"
            missing.append(Finding(severity=Severity.ERROR, code="not-brought", message=message))
            continue
        brought.append(str(target))
    if not missing:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DONE).touch()
    return brought, missing


_ACTS: Final = {
    "list": _list,
    "show": _show,
    "log": _log,
    "cancel": _cancel,
    "retry": _retry,
    "remove": _remove,
    "fetch": _fetch,
}
