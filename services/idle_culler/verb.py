"""`gpu-workspaces cull`: judge servers, or a recording of them, by a policy that need not be in force yet.

Shell: reads files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from hub_ext.catalog.load import load_catalog
from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.files import read_yaml
from hub_ext.cli.report import Report, count, table
from hub_ext.errors import Finding, Severity
from hub_ext.units import format_duration, parse_duration

from ..base import read_settings
from .answers import text_of
from .facts import FACTS, Facts
from .record import recordings
from .replay import Life, replay
from .settings import CullerSettings
from .signal import Source, Value
from .verdict import Action

HELP = "say who would be stopped for being idle, and why; or play a recording through a policy"

MAX_INTERVAL: Final = timedelta(hours=1)


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", metavar="judge|replay", required=True)
    for name, text in (
        ("judge", "say of each server what happens to it, as of the last observation of it"),
        ("replay", "say who would have been stopped over the whole recording, and what had come back"),
    ):
        sub = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.add_argument(
            "facts",
            nargs="+",
            type=Path,
            metavar="FACTS",
            help="observations: a folder that the idle-culler records to, or YAML, JSON or JSON lines",
        )
        for option in ("--json", "--strict"):  # also behind the word, where they are looked for
            sub.add_argument(option, action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        sub.add_argument("--settings", type=Path, help="settings of the idle-culler with the policy to try")
        sub.add_argument("--catalog", type=Path, help="the catalog, for the limits of profiles")
        sub.add_argument(
            "--every",
            type=parse_duration,
            metavar="SPAN",
            help="interval of the recording (default: its own)",
        )


def run(args: argparse.Namespace) -> Report:
    settings = read_settings(CullerSettings, args.settings)
    facts = sorted(_read_all(args.facts), key=lambda one: one.at)
    if not facts:
        raise UsageError("there are no observations in these files")
    every = args.every or _interval(facts)
    catalog = load_catalog(args.catalog) if args.catalog else None
    lives = sorted(
        replay(facts, settings.policy, catalog, every=every),
        key=lambda one: (one.user, one.server, one.last.at),
    )
    return _judged(lives) if args.what == "judge" else _replayed(lives, every)


# Reading


def _read_all(paths: Sequence[Path]) -> Iterator[Facts]:
    for path in paths:
        for file in recordings(path):
            yield from _read(file)


def _read(path: Path) -> Iterator[Facts]:
    for place, data in _documents(path):
        try:
            yield FACTS.validate_python(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(f"{place}: {where}: {first['msg']}") from None


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    if ".jsonl" in path.suffixes:
        yield from _lines(path)
        return
    data = read_yaml(path)
    items = data.get("servers", [data]) if isinstance(data, dict) else data
    for number, item in enumerate(items if isinstance(items, list) else [items]):
        yield f"{path}[{number}]", item


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Read a recording; one that is being written may end in the middle of a line, and is named then."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"{path}:{number}", json.loads(line)
    except (EOFError, zlib.error, ValueError, gzip.BadGzipFile, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None


def _interval(facts: Sequence[Facts]) -> timedelta:
    """Give the usual time between two looks: the middle of the gaps between moments."""
    moments = sorted({one.at for one in facts})
    gaps = sorted(later - earlier for earlier, later in pairwise(moments))
    return min(gaps[len(gaps) // 2], MAX_INTERVAL) if gaps else timedelta(minutes=1)


# Telling


def _judged(lives: Sequence[Life]) -> Report:
    told = [_tell(life) for life in lives]
    rows = [("server", "decision", "state", "left", "why")]
    rows += [
        (f"{one['user']}/{one['server']}", one["decision"], one["value"], one["left"] or "-", one["text"])
        for one in told
    ]
    findings = [
        Finding(
            severity=Severity.NOTE,
            code=signal["reason"],
            message=f"{one['user']}/{one['server']}: it is not known whether its GPU works",
        )
        for one in told
        for signal in one["signals"]
        if signal["source"] == Source.GPU and signal["value"] == Value.UNKNOWN
    ]
    return Report(findings=findings, result={"servers": told}, text=table(rows))


_DECISIONS: Final = {Action.KEEP: "keep", Action.WARN: "warn", Action.SAVE: "cull", Action.STOP: "cull"}


def _tell(life: Life) -> dict[str, Any]:
    verdict = life.stop or life.verdict
    gpu = next((one for one in verdict.signals if one.source is Source.GPU), None)
    left = verdict.seconds_left
    return {
        "user": life.user,
        "server": life.server,
        "decision": _DECISIONS[verdict.action],
        "state": verdict.told.value,
        "value": verdict.value.value,
        "gpuState": gpu.value.value if gpu else None,
        "reason": verdict.reason.value,
        "text": text_of(verdict),
        "limit": verdict.limit.value if verdict.limit else None,
        "deadline": verdict.deadline.isoformat() if verdict.deadline else None,
        "left": format_duration(timedelta(seconds=round(left))) if left is not None else None,
        "signals": [
            {
                "source": one.source.value,
                "value": one.value.value,
                "reason": one.reason.value,
                "at": one.at.isoformat() if one.at else None,
            }
            for one in verdict.signals
        ],
    }


def _replayed(lives: Sequence[Life], every: timedelta) -> Report:
    stopped = [life for life in lives if life.stopped is not None]
    hours = sum(life.gpu_hours_back for life in stopped)
    again = sum(life.used_again is not None for life in stopped)
    result = {
        "sessions": len(lives),
        "stopped": len(stopped),
        "gpuHoursBack": round(hours, 2),
        "usedAgain": again,
        "intervalSeconds": every.total_seconds(),
        "stops": [life.as_dict() for life in stopped],
    }
    rows = [("server", "stopped", "why", "GPU hours back", "used again")]
    rows += [
        (
            f"{life.user}/{life.server}",
            f"{life.stopped:%Y-%m-%d %H:%M}",
            life.stop.reason.value if life.stop else "",
            f"{life.gpu_hours_back:.1f}",
            f"{life.used_again:%Y-%m-%d %H:%M}" if life.used_again else "no",
        )
        for life in stopped
    ]
    text = (
        f"{count(len(lives), 'session')}, {len(stopped)} would have been stopped; {hours:.1f} GPU hours had "
        f"come back. {again} of these worked again later in the same session."
    )
    return Report(result=result, text=f"{table(rows)}\n\n{text}" if stopped else text)
