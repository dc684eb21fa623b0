"""The shared watch in the form in which KubeSpawner reads pods.

KubeSpawner 7 keeps one reflector per namespace in `KubeSpawner.reflectors` and reads `pods` and
`first_load_future` of it (`kubespawner/spawner.py`). Its own lists all pods again every ten seconds.

Shell: reads what the watch keeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from .watch import ClusterWatch


class SharedPods:
    """Stands in for `kubespawner.spawner.PodReflector`."""

    kind = "pods"

    def __init__(self, watch: ClusterWatch) -> None:
        self._watch = watch
        self.first_load_future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def reads(self, watch: ClusterWatch) -> bool:
        """Say whether it reads this watch, not that of a hub that ran in the process before."""
        return self._watch is watch

    @property
    def pods(self) -> Mapping[str, dict[str, Any]]:
        """Pods by ``namespace/name``, with labels and status."""
        return self._watch.state.raw_pods

    async def start(self) -> None:
        """Wait for the first full picture."""
        await self._watch.start()
        await self._watch.loaded()
        if not self.first_load_future.done():
            self.first_load_future.set_result(None)

    async def stop(self) -> None:
        """Do nothing: the watch belongs to the hub."""


class NoEvents:
    """Stands in for `kubespawner.spawner.EventReflector`: progress is told from the shared watch instead."""

    kind = "events"

    def __init__(self) -> None:
        self.first_load_future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.first_load_future.set_result(None)

    @property
    def events(self) -> list[dict[str, Any]]:
        return []

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""
