"""What `gpu-workspaces handoff` does with files alone: judge manifests of runs, and render their place.

Shell: reads files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.cluster_files import read_objects
from hub_ext.cli.report import Report
from hub_ext.errors import Finding, Severity
from hub_ext.quota.arithmetic import Resources, pod_request
from services.base.settings import read_settings

from .manifest.place import build_place
from .manifest.rayjob import RayVerdict, judge_ray_job
from .queue import When, forecast
from .queue_facts import Queue, read_queue
from .settings import HandoffSettings

_JUDGED: Final = ("Job", "RayJob")
_NOT_WHOLE: Final = (LookupError, TypeError, AttributeError, ValueError)
"""What reading an object raises that no API server would give."""


def place(args: argparse.Namespace) -> Report:
    """Render the place of the runs."""
    documents = build_place(read_settings(HandoffSettings, args.config))
    return Report(result=documents, text=yaml.safe_dump_all(documents, sort_keys=False))


def check(args: argparse.Namespace) -> Report:
    """Judge manifests."""
    queue = _read_queue(args.queue) if args.queue else None
    found: list[Finding] = []
    checked = 0
    for file in args.files:
        runs = [(number, one) for number, one in enumerate(read_objects(file)) if one["kind"] in _JUDGED]
        if not runs:
            raise UsageError(f"{file}: there is no {' or '.join(_JUDGED)} in it")
        checked += len(runs)
        for number, one in runs:
            where = f"{file}#{number}"
            try:
                found += _judge(one, queue, args, where=where)
            except _NOT_WHOLE as error:
                raise UsageError(f"{where}: this {one['kind']} is not whole: {error!r}") from error
    text = "" if found else "Nothing to say against these runs."
    return Report(findings=found, result={"checked": checked}, text=text)


def _read_queue(file: Path) -> Queue:
    objects = read_objects(file)
    found = [one for one in objects if one["kind"] == "ClusterQueue"]
    if len(found) != 1:
        raise UsageError(f"{file}: one ClusterQueue is expected, and it has {len(found)}")
    try:
        flavors = {one["metadata"]["name"]: one for one in objects if one["kind"] == "ResourceFlavor"}
        return read_queue(found[0], flavors)
    except _NOT_WHOLE as error:
        raise UsageError(f"{file}: a queue or flavor is not whole: {error!r}") from error


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
