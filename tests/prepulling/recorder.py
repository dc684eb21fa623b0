"""What really was under way at each moment, by the API server's own record of changes.

Shell: talks to the cluster.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from services.kube import Kube, api_path
from services.prepuller.facts import registry_of
from services.prepuller.pods import ANNOTATION_NODE, LABEL_WANT


@dataclass
class Recorder:
    """Pulls under way as changes of pods tell it: until the image's container ran, or the pod is gone."""

    most: Counter[str] = field(default_factory=Counter)
    """Most at once, by `total`, `node`, `pool/<name>` and `registry/<host>`; nodes bear their pool's name."""
    created: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Pods that were made, by image and node."""
    _flying: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    def take(self, change: str, pod: Mapping[str, Any]) -> None:
        """Take in one change, in the order of the API server."""
        name = pod["metadata"]["name"]
        image = pod["spec"]["containers"][0]["image"]
        node = pod["metadata"]["annotations"][ANNOTATION_NODE]
        assert LABEL_WANT in pod["metadata"]["labels"]
        if change == "ADDED":
            self.created[image, node] += 1
        if change == "DELETED" or _came(pod):
            self._flying.pop(name, None)
        else:
            self._flying[name] = (node, node.rpartition("-")[0], registry_of(image))
        self._count()

    def _count(self) -> None:
        flying = self._flying.values()
        now = Counter({"total": len(self._flying)})
        now["node"] = max(Counter(node for node, _, _ in flying).values(), default=0)
        for pool, number in Counter(pool for _, pool, _ in flying).items():
            now[f"pool/{pool}"] = number
        for host, number in Counter(host for _, _, host in flying).items():
            now[f"registry/{host}"] = number
        self.most |= now


def _came(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status") or {}
    states = [one["state"] for one in status.get("containerStatuses") or () if one["name"] == "image"]
    return any("running" in state or "terminated" in state for state in states)


@asynccontextmanager
async def recording(kube: Kube, namespace: str, recorder: Recorder) -> AsyncIterator[Recorder]:
    """Record all changes of pods in a namespace that is empty when this begins."""
    path = api_path("v1", "pods", namespace=namespace)
    begun = await kube.list(path)
    assert not begun.items

    async def follow() -> None:
        version = begun.version
        while True:
            async for change, pod in kube.watch(path, version):
                version = pod["metadata"]["resourceVersion"]
                if change != "BOOKMARK":
                    recorder.take(change, pod)

    task = asyncio.create_task(follow())
    try:
        yield recorder
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
