"""The prepuller as a service: settings, connections, periodic work, pages.

Shell: owns connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from kubernetes_asyncio.client import ApiClient, CoreV1Api
from tornado.web import RequestHandler

from hub_ext.audit import read_records
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.sources import DeniedError, Source
from hub_ext.cluster.watch import Health, Watch

from ..base import CatalogFile, Loop, Service, ServiceSettings
from ..kube import Kube
from .benefit import Starts, count_starts
from .handlers import Board, Gate, PlanView, Status, Warm
from .judge import Moment
from .metrics import Metrics
from .prepuller import Prepuller
from .settings import Settings
from .store import Store

EVERY: Final = timedelta(seconds=15)
"""Longest time between two looks: backoffs and schedules end by the clock."""
SETTLE: Final = 0.5
"""Seconds from a change to the look at it: changes come in groups."""
SHARE: Final = 4
"""A judgement is followed by a rest of so many times its length: no storm of changes takes the processor."""
STARTS: Final = timedelta(minutes=5)


class PrepullerSettings(ServiceSettings, Settings):
    """Settings of the process."""

    catalog: Path
    """The catalog's file or folder, the same as the hub's; changes are followed."""
    start_log: Path | None = None
    """The hub's log of starts (`WorkspaceSpawner.start_log`), to fetch first what is used most."""


def sources(api: ApiClient, namespace: str) -> tuple[Source, ...]:
    """Name what is watched: all nodes, and pods and events of one namespace."""
    core, here = CoreV1Api(api), {"namespace": namespace}
    events, pods = core.list_namespaced_event, core.list_namespaced_pod
    return (
        Source(kind=Kind.NODES, call=core.list_node, required=True),
        # Before the pods: what they tell is then complete when a pod is read.
        Source(kind=Kind.EVENTS, namespace=namespace, call=events, arguments=here),
        Source(kind=Kind.PODS, namespace=namespace, call=pods, arguments=here, required=True),
    )


class PrepullerService(Service[PrepullerSettings]):
    """Fetches the catalog's images to the nodes where they can start, before users come."""

    settings_type: ClassVar = PrepullerSettings
    title: ClassVar = "Images on nodes"
    package: ClassVar = "services.prepuller"

    async def open(self, stack: AsyncExitStack) -> None:
        self.catalog = CatalogFile(self.settings.catalog)
        self.kube = await stack.enter_async_context(await Kube.connect())
        self.loop = Loop("prepull", self._once, every=EVERY)
        self._rest = SETTLE
        self._alarm: asyncio.TimerHandle | None = None
        store = Store(self._changed)
        self.prepuller = Prepuller(self.settings, store=store, kube=self.kube, metrics=Metrics(self.registry))
        self.watch = Watch(store, sources(self.kube.api, self.settings.pods.namespace))
        await self.watch.start()
        stack.push_async_callback(self.watch.stop)

    def loops(self) -> Sequence[Loop]:
        starts = [Loop("starts", self._read_starts, every=STARTS)] if self.settings.start_log else []
        return (self.loop, *starts)

    def handlers(self) -> Iterable[tuple[str, type[RequestHandler], dict[str, Any]]]:
        return (
            ("", Board, {}),
            ("api/warm", Warm, {}),
            ("api/status", Status, {}),
            ("api/plan", PlanView, {}),
            ("api/gate", Gate, {}),
        )

    @property
    def moment(self) -> Moment | None:
        """What was judged last; None while nodes or pods are not in sight."""
        return self.prepuller.last

    def _changed(self) -> None:
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(self._rest, self.loop.soon)

    async def _once(self) -> None:
        self._alarm = None
        await self.prepuller.once(await self.catalog.current())
        self._rest = max(SETTLE, SHARE * self.prepuller.judging)
        for label, health in self.watch.health().items():
            if health is Health.DENIED and not label.startswith(Kind.EVENTS.value):
                raise DeniedError("may not be listed and watched: see REFERENCE.md, Rights", kind=label)

    async def _read_starts(self) -> None:
        """Count recent starts. The file belongs to the hub: it may not be there yet."""
        self.prepuller.judge.starts = await asyncio.to_thread(_starts_of, self.settings.start_log)


def _starts_of(path: Path | None) -> Starts:
    if path is None or not path.exists():
        return {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        return count_starts(read_records(lines, name=str(path)), datetime.now(UTC))
