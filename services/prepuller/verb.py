"""`gpu-workspaces prepull`: what would be fetched, what is warm, and whether a release may go out.

Shell: reads files, asks the service, waits.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx

from hub_ext.audit import read_records
from hub_ext.catalog.load import load_catalog
from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.cluster_files import read_objects
from hub_ext.cli.files import read_text
from hub_ext.cli.report import Report, count, table
from hub_ext.cluster.images import short_name
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.texts import span
from hub_ext.errors import Finding, RemoteError, Severity
from hub_ext.units import gib, parse_duration

from ..base.settings import read_settings
from .app import PrepullerSettings
from .benefit import count_starts
from .gate import Outcome, Question
from .gate import judge as judge_gate
from .judge import Judge, Moment
from .reasons import Reason, State
from .reports import findings, plan_report, severity_of
from .settings import Settings
from .store import Store
from .wants import mark_of

HELP = "say which images are warm, what is fetched next, and whether enough is warm to release"
TOKEN: Final = "JUPYTERHUB_API_TOKEN"  # noqa: S105 - name of a variable
_KINDS: Final = {"Node": Kind.NODES, "Pod": Kind.PODS, "Event": Kind.EVENTS}
_ORDER: Final = (Kind.EVENTS, Kind.PODS, Kind.NODES)


class _FileSettings(PrepullerSettings):
    """The service's file; the catalog is named on the command line."""

    catalog: Path = Path()


class ServiceError(RemoteError):
    """The prepuller does not answer."""

    def __init__(self, what: str, *, status: int | None = None) -> None:
        super().__init__(what, system="prepuller", status=status)


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="plan|status|gate", required=True)
    plan = actions.add_parser("plan", help="what is fetched and let go next, by files or by the service")
    status = actions.add_parser("status", help="what is warm where, by files or by the service")
    for action in (plan, status):
        action.add_argument(
            "catalog", nargs="?", type=Path, metavar="CATALOG", help="with --cluster: the catalog"
        )
        _add_cluster(action)
        _add_service(action)
    gate = actions.add_parser("gate", help="wait until enough nodes are warm: exit 0, else 1")
    gate.add_argument(
        "--least", type=_share, default=0.9, metavar="SHARE", help="90%% or 0.9 (the default) of the nodes"
    )
    gate.add_argument("--pool", default="", metavar="NAME", help="this pool only")
    gate.add_argument("--profile", default="", metavar="NAME[@VERSION]", help="this profile only")
    gate.add_argument(
        "--catalog",
        type=Path,
        metavar="CATALOG",
        help="the catalog that is released: wait until the service has taken it over",
    )
    gate.add_argument(
        "--timeout", type=parse_duration, default=timedelta(0), metavar="TIME", help="wait so long: 30m"
    )
    _add_service(gate)
    for action in (plan, status, gate):
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        action.add_argument(
            "--strict", action="store_true", default=argparse.SUPPRESS, help="let warnings fail too"
        )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="what `kubectl get nodes -o json`, and pods and events of the prepuller's namespace, wrote",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the prepuller's settings")
    parser.add_argument("--starts", type=Path, metavar="LOG", help="the hub's log of starts")
    parser.add_argument(
        "--now", type=datetime.fromisoformat, metavar="TIME", help="judge as of this moment, with its zone"
    )


def _add_service(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        default=os.environ.get("GPU_WORKSPACES_PREPULLER_URL", ""),
        help=f"of the service, such as https://hub.example.com/services/prepuller; token in {TOKEN}",
    )


def _share(text: str) -> float:
    number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share: write 90% or 0.9")
    return number


def run(args: argparse.Namespace) -> Report:
    if args.action == "gate":
        return _gate(args)
    tell = _plan if args.action == "plan" else _status
    if args.cluster:
        moment = _judge(args)
        found = tuple(findings(moment.picture, moment.summary))
        if args.action == "plan":
            return tell(plan_report(moment.picture, moment.plan), found)
        return tell(moment.summary.as_dict(), found)
    if not args.url:
        raise UsageError("name files of a cluster (--cluster), or the service (--url)")
    result, status = _ask(args.url, args.action), _ask(args.url, "status")
    with _readable(args.url):
        return tell(result, tuple(_told(status)))


# From files


def _judge(args: argparse.Namespace) -> Moment:
    if args.catalog is None:
        raise UsageError("name the catalog that the cluster is to be judged by")
    now = args.now or datetime.now(tz=UTC)
    if now.tzinfo is None:
        raise UsageError(f"--now {now.isoformat()}: say the time zone, such as +00:00")
    store = Store()
    objects = [item for path in args.cluster for item in read_objects(path)]
    for kind in _ORDER:
        for item in objects:
            if _KINDS.get(item["kind"]) is kind:
                _put(store, kind, item, now)
    if not store.machines:
        raise UsageError("no node in these files: add what `kubectl get nodes -o json` writes")
    judge = Judge(_settings(args.config), store)
    if args.starts is not None:
        lines = read_text(args.starts).splitlines()
        judge.starts = count_starts(read_records(lines, name=str(args.starts)), now)
    return judge.judge(load_catalog(args.catalog), now)


def _put(store: Store, kind: Kind, item: Mapping[str, Any], now: datetime) -> None:
    try:
        store.put(kind, item, now)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        name = item["metadata"].get("name")
        raise UsageError(f"{item['kind']} {name} is not as an API server gives it: {error!r}") from error


def _settings(path: Path | None) -> Settings:
    return Settings() if path is None else read_settings(_FileSettings, path)


def _plan(result: Mapping[str, Any], found: Sequence[Finding]) -> Report:
    lines = [f"{one['node']}: fetch {short_name(one['image'])}" for one in result["fetch"]]
    lines += [f"{one['node']}: let go {short_name(one['image'])} ({one['why']})" for one in result["letGo"]]
    lines += _waiting(result["wait"])
    lines += [f"{one['node']}: a release would free {_size(one['bytes'])}" for one in result["wouldFree"]]
    text = "\n".join(lines) or "Nothing to do: all is warm."
    return Report(findings=found, result=result, text=text)


def _waiting(waits: list[Mapping[str, Any]]) -> Iterator[str]:
    numbers: dict[tuple[str, str], int] = {}
    for one in waits:
        key = (one["image"], one["text"])
        numbers[key] = numbers.get(key, 0) + 1
    for (image, text), number in numbers.items():
        yield f"{count(number, 'node')}: {short_name(image)} waits: {text}"


def _size(number: int | None) -> str:
    return "an amount that is not known" if number is None else gib(number)


def _status(status: Mapping[str, Any], found: Sequence[Finding]) -> Report:
    head = (
        "pool",
        "image",
        "warm",
        *(state.value for state in State if state is not State.PULLED),
        "usually",
    )
    rows = [
        (
            one["pool"] or "-",
            short_name(one["image"]),
            f"{one['warm']}/{one['nodes']}",
            *(str(one["states"].get(state.value, 0)) for state in State if state is not State.PULLED),
            span(timedelta(seconds=one["usualSeconds"])) if one["usualSeconds"] is not None else "-",
        )
        for one in status["images"]
    ]
    return Report(findings=found, result=status, text=table([head, *rows]))


def _told(status: Mapping[str, Any]) -> Iterator[Finding]:
    for one in status["problems"]:
        yield Finding(
            severity=severity_of(Reason(one["reason"])),
            code=one["reason"],
            message=f"{one['subject']} on {one['node']}: {one['detail'] or one['text']}",
            path=f"nodes/{one['node']}",
            help=one["text"],
        )


# From the service


def _ask(url: str, what: str, **query: str) -> dict[str, Any]:
    headers = {"Authorization": f"token {token}"} if (token := os.environ.get(TOKEN)) else {}
    try:
        answer = httpx.get(f"{url.rstrip('/')}/api/{what}", params=query, headers=headers, timeout=30)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        hint = f"; set {TOKEN} to a token that may use the service" if status in {401, 403} else ""
        raise ServiceError(f"{url} refuses{hint}", status=status) from error
    except (httpx.HTTPError, ValueError) as error:
        raise ServiceError(f"{url} does not answer as it should: {error!r}") from error
    return found


@contextmanager
def _readable(url: str) -> Iterator[None]:
    """Turn what cannot be read of an answer into an error: the service may be of another version."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ServiceError(f"{url} answers in words that are not known here: {error!r}") from error


def _gate(args: argparse.Namespace, sleep: Callable[[float], None] = time.sleep) -> Report:
    if not args.url:
        raise UsageError("name the service: --url https://hub.example.com/services/prepuller")
    mark = mark_of(load_catalog(args.catalog)) if args.catalog is not None else ""
    question = Question(least=args.least, pool=args.pool, profile=args.profile, catalog=mark)
    end = time.monotonic() + args.timeout.total_seconds()
    told: tuple[str, ...] = ()
    while True:
        status = _ask(args.url, "status")
        with _readable(args.url):
            verdict = judge_gate(status, question)
        left = end - time.monotonic()
        if verdict.outcome is not Outcome.WAITING or left <= 0:
            break
        if verdict.lines != told:
            told = verdict.lines
            sys.stderr.write(f"waiting: {'; '.join(told)}\n")
            sys.stderr.flush()
        sleep(min(_POLL, left))
    found = [_finding(Severity.WARNING, "gate-warning", text) for text in verdict.warnings]
    if verdict.outcome is not Outcome.READY:
        found += [_finding(Severity.ERROR, f"gate-{verdict.outcome.value}", text) for text in verdict.lines]
    return Report(findings=found, result=verdict.as_dict(), text=f"The gate is {verdict.outcome.value}.")


_POLL: Final = 5.0


def _finding(severity: Severity, code: str, text: str) -> Finding:
    return Finding(severity=severity, code=code, message=text)
