"""What `gpu-workspaces handoff` does with files alone: judge manifests of runs, and render their place.

Shell: reads files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.report import Report
from hub_ext.errors import Finding, Severity
from hub_ext.quota.arithmetic import Resources, pod_request
from services.base.settings import read_settings

from .manifest.place import build_place
from .manifest.rayjob import RayVerdict, judge_ray_job
from .queue import When, forecast
from .queue_facts import Queue, read_queue
from .settings import HandoffSettings


def place(args: argparse.Namespace) -> Report:
    """Render the place of the runs."""
    documents = build_place(read_settings(HandoffSettings, args.config))
    return Report(result=documents, text=yaml.safe_dump_all(documents, sort_keys=False))


def check(args: argparse.Namespace) -> Report:
    """Judge manifests."""
    queue = _read_queue(args.queue) if args.queue else None
    found: list[Finding] = []
    for file in args.files:
        for number, document in enumerate(_documents(file)):
            found += _judge(document, queue, args, where=f"{file}#{number}")
    text = "" if found else "Nothing to say against these runs."
    return Report(findings=found, result={"checked": len(args.files)}, text=text)


def _documents(file: Path) -> list[dict[str, Any]]:
    try:
        return [one for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if isinstance(one, dict)]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}") from error


def _read_queue(file: Path) -> Queue:
    documents = _documents(file)
    flavors = {one["metadata"]["name"]: one for one in documents if one.get("kind") == "ResourceFlavor"}
    found = [one for one in documents if one.get("kind") == "ClusterQueue"]
    if len(found) != 1:
        raise UsageError(f"{file}: one ClusterQueue is expected, and it has {len(found)}")
    return read_queue(found[0], flavors)


def _judge(
    document: Mapping[str, Any], queue: Queue | None, args: argparse.Namespace, *, where: str
) -> Iterator[Finding]:
    if document.get("kind") == "RayJob":
        verdict, text = judge_ray_job(document)
        if verdict is not RayVerdict.OK:
            severity = Severity.ERROR if verdict is RayVerdict.ERROR else Severity.WARNING
            yield Finding(severity=severity, code="ray-job", message=text, file=where)
    asked = _asked(document)
    if queue is None or not asked:
        return
    seen = forecast(queue, asked, selector={}, excluded=tuple(args.exclude))
    if seen.when is When.NEVER:
        yield Finding(
            severity=Severity.ERROR, code=seen.reason, message=seen.text, file=where, help=seen.help
        )


def _asked(document: Mapping[str, Any]) -> Resources:
    """Say what the pods of a Job ask for; nothing for what is no Job."""
    if document.get("kind") != "Job":
        return Resources()
    spec = document.get("spec") or {}
    one = pod_request((spec.get("template") or {}).get("spec") or {}).requests
    pods = int(spec.get("parallelism") or 1)
    return Resources({name: amount * pods for name, amount in one.items()})
