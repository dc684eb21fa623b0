"""The idle-culler as a service: its connections, its loop, its routes.

Shell: owns connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from tornado.web import RequestHandler

from hub_ext.cluster.watch import utc_now
from hub_ext.errors import WorkspaceError

from ..base import CatalogFile, Loop, Service
from ..kube import Kube
from ..prometheus import Prometheus
from .book import Book
from .callers import Callers
from .culler import Culler, Tools
from .handlers import ROUTES
from .measure import Meter
from .memory import Store
from .metrics import CullerMetrics
from .notify import Notifier, is_address
from .observe import Observer
from .record import Recorder
from .settings import ACCOUNT_NAMESPACE, CullerSettings, Notify
from .stopping import Stopper

COLLECT: Final = (10_000, 1_000, 1_000)
"""How many objects the garbage collector lets come: of the young ones, and passes over the older ones.

What is known of servers is replaced at each pass and has no cycles. To look for some several times a pass, as
Python does by itself, would hold the event loop for longer than anything else.
"""


class IdleCuller(Service[CullerSettings]):
    """Take back GPUs that nobody uses, and never anybody's work."""

    settings_type = CullerSettings
    title = "Idle workspaces"
    package = "services.idle_culler"
    culler: Culler
    callers: Callers
    _catalog: CatalogFile | None = None
    _recorder: Recorder | None = None

    async def open(self, stack: AsyncExitStack) -> None:
        settings = self.settings
        self._catalog = CatalogFile(settings.catalog) if settings.catalog else None
        kube = await stack.enter_async_context(await Kube.connect()) if settings.kubernetes else None
        observer = Observer(
            self.hub,
            kube,
            await self._meter(stack),
            namespaces=self._namespaces(),
            clock=utc_now,
            list_hub_every=settings.list_hub_every,
        )
        stopper = Stopper(
            self.hub,
            observer,
            clock=utc_now,
            concurrency=settings.concurrency,
            within=settings.stop_within,
        )
        store = Store(settings.state)
        book = Book(
            policy=settings.policy,
            observer=observer,
            memory=store.load(),
            clock=utc_now,
            every=settings.every,
        )
        tools = Tools(
            stopper=stopper,
            store=store,
            notifier=build_notifier(settings.notify),
            metrics=CullerMetrics(self.registry),
            handoff=settings.handoff,
            page=settings.page,
        )
        self.culler = Culler(book, tools)
        self.callers = Callers()
        if settings.record:
            self._recorder = Recorder(settings.record)
        stack.push_async_callback(self.culler.close)

    def _namespaces(self) -> tuple[str, ...]:
        if self.settings.namespace or not self.settings.kubernetes:
            return self.settings.namespace
        if ACCOUNT_NAMESPACE.exists():
            return (ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip(),)
        raise WorkspaceError("namespace is not set: say where workspaces run")

    async def _meter(self, stack: AsyncExitStack) -> Meter | None:
        settings = self.settings.prometheus
        if settings is None:
            return None
        prometheus = Prometheus(settings.url, token_file=settings.token_file, ca_file=settings.ca_file)
        return Meter(
            await stack.enter_async_context(prometheus),
            namespaces=self._namespaces(),
            window=self.settings.window,
            sample_every=self.settings.sample_every,
            matchers=self.settings.matchers,
        )

    async def once(self) -> None:
        """Do one pass."""
        book = self.culler.book
        if self._catalog is not None:
            book.catalog = await self._catalog.current()
        await self.culler.once()
        if self._recorder is not None:
            await self._recorder.note([one.facts for one in book.judged.values()], book.clock())

    def loops(self) -> Sequence[Loop]:
        settings = self.settings
        return (
            Loop("cull", self.once, every=settings.every, limit=max(settings.every, timedelta(minutes=5))),
        )

    def handlers(self) -> Iterable[tuple[str, type[RequestHandler], dict[str, Any]]]:
        return ROUTES


def build_notifier(settings: Notify) -> Notifier:
    """Make what sends notices; what is wrong with an address is said without it, for it may hold a password.

    Raises
    ------
    WorkspaceError
        The file cannot be read, or an address is none.
    """
    further = _read_addresses(settings.file) if settings.file else Notify()
    users, admins = (*settings.users, *further.users), (*settings.admins, *further.admins)
    for name, urls in (("users", users), ("admins", admins)):
        for number, url in enumerate(urls):
            if not is_address(url):
                raise WorkspaceError(f"notify.{name}[{number}] is no address in the spelling of Apprise")
    return Notifier(users, admins)


def _read_addresses(path: Path) -> Notify:
    try:
        return Notify.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, UnicodeDecodeError) as error:
        problem = repr(error)
    except yaml.YAMLError:
        problem = "it is no YAML"
    raise WorkspaceError(f"notify.file: {path}: {problem}")
