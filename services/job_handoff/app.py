"""The service: its parts, its pages and its periodic work.

Shell: owns connections.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, ClassVar

from tornado.web import RequestHandler

from services.base import CatalogFile, Loop, Service
from services.kube import Kube

from .actions import Actions
from .api import ROUTES
from .board import Board
from .census import Census
from .cluster import Cluster
from .core import Core, runner_secret
from .desk import Desk
from .keeper import Keeper
from .kept import Kept
from .metrics import Metrics
from .pages import PAGES
from .remover import Remover
from .runner_api import RUNNER_ROUTES
from .settings import HandoffSettings
from .store import Store
from .trail import Trail

log = logging.getLogger(__name__)

TEND_EVERY = timedelta(seconds=10)
CLEAN_EVERY = timedelta(minutes=30)


class JobHandoff(Service[HandoffSettings]):
    """Turns notebooks and scripts into runs on the cluster."""

    settings_type: ClassVar[type[HandoffSettings]] = HandoffSettings
    title: ClassVar[str] = "Runs"
    package: ClassVar[str] = "services.job_handoff"

    core: Core
    desk: Desk
    board: Board
    keeper: Keeper
    actions: Actions
    remover: Remover

    async def open(self, stack: AsyncExitStack) -> None:
        """Connect to the cluster and make the parts."""
        kube = await stack.enter_async_context(await Kube.connect())
        self.assemble(kube, Store.open(self.settings.store))
        documented, meant = set(self.settings.documented_groups), set(self.settings.groups)
        if documented and (differing := documented ^ meant):
            log.warning("groups differ from the documented ones: groups=%s", ", ".join(sorted(differing)))

    def assemble(self, kube: Kube, store: Store) -> None:
        """Put the parts together."""
        settings = self.settings
        cluster = Cluster(kube, settings.namespace)
        self.core = Core(
            settings=settings,
            kube=kube,
            cluster=cluster,
            store=store,
            hub=self.hub,
            catalogs=CatalogFile(settings.catalog),
            census=Census(kube, cluster, settings.server_namespaces),
            kept=Kept(store, settings.bounds),
            metrics=Metrics(self.registry),
            trail=Trail(store),
            secret=runner_secret(settings, self.context.token),
        )
        self.desk = Desk(self.core)
        self.board = Board(self.core)
        self.keeper = Keeper(self.core, self.board)
        self.actions = Actions(self.core, self.board, self.desk, self.keeper)
        self.remover = Remover(self.core, self.board)

    def loops(self) -> Sequence[Loop]:
        """Give the periodic work."""
        return (
            Loop("tend", self.keeper.tend, every=TEND_EVERY, limit=timedelta(minutes=10)),
            Loop("gates", self.keeper.open_gates, every=timedelta(seconds=5)),
            Loop("clean", self.keeper.clean, every=CLEAN_EVERY, limit=timedelta(hours=1)),
        )

    def handlers(self) -> Iterable[tuple[str, type[RequestHandler], dict[str, Any]]]:
        """Give pages, interface, and what pods of runs ask."""
        return (*PAGES, *ROUTES, *RUNNER_ROUTES)
