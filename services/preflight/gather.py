"""Look at a live cluster, or at files that were written from one. Nothing is changed.

Shell: talks to the Kubernetes API and Prometheus, reads and writes files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.cluster_files import read_objects

from ..kube import ForbiddenError, Kube, NotFoundError
from ..prometheus import Prometheus
from .checks.monitoring import BUSY
from .kept import kept
from .kinds import BY_RESOURCE, KINDS, OPTIONAL, resource_of
from .problems import PAGE
from .scene import Metrics, Object, Objects

AT_ONCE: Final = 4
"""Lists that are asked for at the same time."""


async def look(kube: Kube) -> tuple[Objects, dict[str, str]]:
    """List everything that a check may want; gives with it what may not be seen, and why.

    Raises
    ------
    KubeError
        The API server does not answer.
    """
    found: dict[str, tuple[Object, ...]] = {}
    denied: dict[str, str] = {}
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(kind: str, path: str) -> None:
        async with slots:
            try:
                listing = await kube.list(path)
            except ForbiddenError as error:
                denied[kind] = str(error)
            except NotFoundError as error:
                if kind in OPTIONAL:
                    found[kind] = ()
                else:
                    denied[kind] = str(error)
            else:
                found[kind] = tuple({"kind": kind, **item} for item in listing)

    try:
        async with asyncio.TaskGroup() as group:
            for kind, path in KINDS.items():
                group.create_task(one(kind, path))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return Objects(found), denied


async def measure(prometheus: Prometheus) -> Metrics:
    """Ask which metrics of the exporter are there; raises `PrometheusError`."""
    names = await prometheus.query('count by (__name__) ({__name__=~"DCGM_FI_.*"})')
    label = ""
    for candidate in ("exported_pod", "pod"):
        if not label and await prometheus.query(f'count({BUSY}{{{candidate}!="",{candidate}!~".*dcgm.*"}})'):
            label = candidate
    return Metrics(fields=frozenset(s.labels.get("__name__", "") for s in names), pod_label=label)


def read_dump(paths: Iterable[Path], *, complete: bool) -> Objects:
    """Read what `kubectl get -o json` wrote: files, or folders of them.

    A file named after a resource (`nodes.json`) says that this kind was looked at, even if it has none.

    Parameters
    ----------
    complete
        Kinds that no file has are empty, not unknown.

    Raises
    ------
    UsageError
        There is nothing in them that a check looks at, or it cannot be read.
    """
    found: dict[str, list[Object]] = {kind: [] for kind in KINDS} if complete else {}
    for path in paths:
        kinds = set()
        for file in _files(path):
            kinds |= {BY_RESOURCE[file.stem]} if file.stem in BY_RESOURCE else set()
            for item in read_objects(file):
                found.setdefault(item["kind"], []).append(item)
                kinds.add(item["kind"])
        if not kinds & KINDS.keys():
            raise UsageError(f"{path}: nothing that a check looks at; {PAGE} says how to write a dump")
        for kind in kinds:
            found.setdefault(kind, [])
    return Objects(found)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(path.glob("*.json")) + sorted(path.glob("*.yaml"))


def save(objects: Objects, folder: Path) -> None:
    """Write a dump that `read_dump` reads, without what may be a secret."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        if objects.seen(kind):
            items = [kept(one) for one in objects.of(kind)]
            text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}, indent=1)
            (folder / f"{resource_of(kind)}.json").write_text(text, encoding="utf-8")
