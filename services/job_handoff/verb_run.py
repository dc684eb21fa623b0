"""`gpu-workspaces run`: hand off a notebook or a script from a workspace.

Shell: reads files, talks to the service, waits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.report import Report
from hub_ext.errors import Finding, Severity

from .client import ENDED, Client, RefusedError
from .form import read_parameter
from .git import check_taken, read_checkout
from .packing import pack
from .snapshot import Limits
from .verdicts import RunRefusedError

HELP = "run a notebook or a script of this workspace on the cluster"
EVERY: Final = 3.0
"""Seconds between two looks at a run that is watched."""
_KNOWN: Final = 4000
"""Characters by which the end of what was shown is found again in a log."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="notebook or script")
    parser.add_argument("--profile", default="", metavar="NAME[@VERSION]", help="job profile")
    parser.add_argument("--choice", action="append", default=[], metavar="QUESTION=ANSWER")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="of a notebook")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="variable of the run"
    )
    parser.add_argument("--team", default="", help="team to book on, where you have several")
    parser.add_argument("--name", default="", help="what to call it")
    parser.add_argument("--kind", choices=("job", "trainjob", "rayjob"))
    parser.add_argument("--launcher", choices=("python", "torchrun", "bash"), help="what starts a script")
    parser.add_argument("--nodes", type=int, default=1, help="pods with the profile's resources")
    parser.add_argument("--priority", help="how urgent it is")
    parser.add_argument("--max-duration", metavar="TIME", help="end it after this long, such as 4h")
    parser.add_argument("--retries", type=int, default=0, help="start it again after a failure")
    parser.add_argument("--output", action="append", default=[], metavar="PATTERN", help="files to keep")
    parser.add_argument("--kernel", help="kernel to take instead of the notebook's own")
    parser.add_argument(
        "--image", choices=("server", "profile"), default="server", help="whose image (%(default)s)"
    )
    parser.add_argument("--release", action="store_true", help="stop this workspace once it is submitted")
    parser.add_argument("--resume", metavar="RUN", help="go on from the checkpoints of an earlier run")
    parser.add_argument("--schedule", metavar="CRON", help='repeat it, such as "0 6 * * 1-5"')
    parser.add_argument("--time-zone", default="Etc/UTC", help="of the schedule (%(default)s)")
    parser.add_argument("--root", type=Path, help="folder to take along; left out, the file's own")
    parser.add_argument(
        "--git", action="store_true", help="run the commit, and take along what is not committed"
    )
    parser.add_argument("--key", help="idempotency key: the same key never makes a second run")
    parser.add_argument("--dry-run", action="store_true", help="say what would become of it")
    parser.add_argument("--watch", action="store_true", help="show its log until it has ended")
    parser.add_argument(
        "--prepare", action="store_true", help="only send the files, and give the page to open"
    )
    parser.add_argument(
        "--args", nargs=argparse.REMAINDER, default=[], help="arguments of a script: all that follows"
    )


def run(args: argparse.Namespace) -> Report:
    if not args.path.is_file():
        raise UsageError(f"there is no file {args.path}")
    if not (args.profile or args.prepare):
        raise UsageError("--profile says what it runs on; the page of the job-handoff lists what there is")
    try:
        with Client.from_environment() as client:
            return _run(client, args)
    except RefusedError as error:
        return refused(error.reason, error.message, path=error.field, help=error.help)
    except RunRefusedError as error:
        return refused(error.reason, error.message, path=error.field, help=error.help)


def refused(reason: str, message: str, *, path: str, help: str) -> Report:  # noqa: A002
    """Make the report of a refusal."""
    finding = Finding(severity=Severity.ERROR, code=reason, message=message, path=path, help=help)
    return Report(findings=[finding], result={"allowed": False, "reason": reason})


def _run(client: Client, args: argparse.Namespace) -> Report:
    source, path = _send(client, args)
    if args.prepare:
        return _prepared(client, source, path)
    answer = client.post("api/runs", body_of(args, source, path), dryRun="true" if args.dry_run else "false")
    lines = [f"{answer['title']}: {answer['forecast']['text']}", *answer["notices"]]
    if args.dry_run:
        return Report(result=answer, text="\n".join(lines))
    lines.append(f"Submitted as {answer['id']}." if answer["created"] else f"It is {answer['id']} already.")
    if not args.watch:
        return Report(result=answer, text="\n".join(lines))
    print("\n".join(lines), flush=True)  # noqa: T201 - a watch tells while it goes on
    return watch(client, answer["id"])


def _send(client: Client, args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Send what the run needs; gives the source and the path of the file in it."""
    limits = Limits(**client.get("api/offers").get("source", {}))
    if args.git:
        checkout = read_checkout(args.path.parent, limits)
        check_taken(args.path)
        if checkout.changes is not None:
            with contextlib.closing(checkout.changes) as changes:
                client.upload(changes)
        patch = checkout.changes.sha256 if checkout.changes else None
        inside = f"{checkout.folder}/{args.path.name}".lstrip("/")
        return {"type": "git", "url": checkout.url, "commit": checkout.commit, "patch": patch}, inside
    root = (args.root or args.path.parent).resolve()
    try:
        inside = args.path.resolve().relative_to(root).as_posix()
    except ValueError as error:
        raise UsageError(f"{args.path} does not lie in {root}") from error
    with contextlib.closing(pack(root, limits)) as packed:
        client.upload(packed)
    return {"type": "snapshot", "sha256": packed.sha256}, inside


def _prepared(client: Client, source: Mapping[str, Any], path: str) -> Report:
    server = os.environ.get("JUPYTERHUB_SERVER_NAME", "")
    query = {"server": server, "snapshot": source.get("sha256", ""), "path": path}
    prefix = "/" + client.url.split("/", 3)[3]
    url = f"{prefix}new?{urlencode(query)}"
    return Report(result={"url": url, **query}, text=url)


def body_of(args: argparse.Namespace, source: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Write the request that the arguments describe; what was not said is left out."""
    body: dict[str, Any] = {
        "key": args.key or secrets.token_hex(16),
        "name": args.name,
        "profile": args.profile,
        "choices": dict(_pair(text) for text in args.choice),
        "team": args.team,
        "kind": args.kind,
        "entry": _entry(args, path),
        "source": {name: value for name, value in source.items() if value is not None},
        "image": args.image,
        "server": os.environ.get("JUPYTERHUB_SERVER_NAME", ""),
        "release": args.release,
        "environment": dict(_pair(text) for text in args.env),
        "priority": args.priority,
        "nodes": args.nodes,
        "retries": args.retries,
        "maxDuration": args.max_duration,
        "outputs": args.output or None,
        "resumeFrom": args.resume,
        "kernels": _kernels() if path.endswith(".ipynb") and args.image == "server" else None,
        "schedule": {"cron": args.schedule, "timeZone": args.time_zone} if args.schedule else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _entry(args: argparse.Namespace, path: str) -> dict[str, Any]:
    if path.endswith(".ipynb"):
        entry = {"type": "notebook", "path": path, "parameters": dict(read_parameter(p) for p in args.param)}
        return entry | ({"kernel": args.kernel} if args.kernel else {})
    if args.param:
        raise UsageError("--param is for notebooks; a script takes arguments")
    launcher = args.launcher or ("bash" if path.endswith(".sh") else "python")
    return {"type": "script", "path": path, "arguments": args.args, "launcher": launcher}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{text}: write NAME=VALUE")
    return name, value


def _kernels() -> list[str] | None:
    """Name the kernels of this workspace; None if nobody can say."""
    command = ["jupyter", "kernelspec", "list", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)  # noqa: S603
        return sorted(json.loads(done.stdout)["kernelspecs"])
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
        return None


def watch(client: Client, run: str, *, sleep: Callable[[float], None] = time.sleep) -> Report:
    """Show how a run stands and what it says until it has ended."""
    said, shown = "", ""
    while True:
        seen = client.get(f"api/runs/{run}")
        status = seen["status"]
        if status["text"] != said:
            said = status["text"]
            print(f"[{status['phase']}] {said}", file=sys.stderr, flush=True)  # noqa: T201
        # The log that was filed has another end of line than the one of the pod.
        log = client.text(f"api/runs/{run}/log", lines="5000").rstrip("\n")
        if new := news(log, shown):
            print(new.removeprefix("\n"), flush=True)  # noqa: T201
            shown = log
        if status["phase"] in ENDED:
            break
        sleep(EVERY)
    if status["phase"] == "succeeded":
        return Report(result=seen)
    finding = Finding(severity=Severity.ERROR, code=status["reason"], message=status["text"])
    return Report(findings=[finding], result=seen)


def news(log: str, shown: str) -> str:
    """Give what a log says beyond what was shown of it; a long log has lost its beginning meanwhile."""
    if log.startswith(shown):
        return log.removeprefix(shown)
    return log.rpartition(shown[-_KNOWN:])[2]
