"""One shared watch of the cluster for the whole hub.

A collection is listed once, then followed by resource version with bookmarks; it is listed again only when
the server has forgotten that version. Whoever waits for a pod is woken by its changes. What the account may
not see stays unknown and is asked for again now and then.

Shell: talks to the Kubernetes API.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Protocol

import aiohttp

from ..errors import KubeError
from .events import Event
from .kinds import Kind
from .pods import Pod
from .snapshot import Snapshot
from .sources import DeniedError, GoneError, Source, changes, pages
from .state import ClusterState

log = logging.getLogger(__name__)

FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 15.0
"""Seconds between tries when the API server does not answer; doubled from the first to the longest."""
DENIED_DELAY: Final = 60.0
"""Seconds until something that may not be seen is asked for again: a role may have been granted."""
BATCH: Final = 50
"""Objects taken in before others get their turn on the event loop."""


class Health(StrEnum):
    """How well one collection is known."""

    LOADING = "loading"
    LIVE = "live"
    STALE = "stale"
    """Known as it was; the API server does not answer at the moment."""
    DENIED = "denied"


@dataclass(slots=True)
class _Followed:
    source: Source
    names: set[str]
    health: Health = Health.LOADING
    problem: str = ""
    since: datetime | None = None
    """When it came into this health."""


def utc_now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)


class Store(Protocol):
    """What takes in what a watch delivers; `ClusterState` says what each of it means."""

    def put(self, kind: Kind, item: Mapping[str, Any], now: datetime) -> str: ...

    def drop(self, kind: Kind, key: str) -> None: ...

    def seen(self, kind: Kind, namespace: str = "") -> None: ...

    def lose(self, kind: Kind, namespace: str = "") -> None: ...


class Watch:
    """Keeps a store up to date, and wakes those who wait for a pod."""

    def __init__(
        self,
        store: Store,
        sources: Iterable[Source],
        *,
        clock: Callable[[], datetime] = utc_now,
        told: Callable[[Mapping[str, Health]], None] | None = None,
    ) -> None:
        """`told` hears how well collections are known, by their names, each time that this changes."""
        self._store = store
        self._told = told or (lambda _: None)
        self._clock = clock
        self._followed = [_Followed(source, set()) for source in sources]
        self._tasks: list[asyncio.Task[None]] = []
        self._loaded = asyncio.Event()
        self._waiters: dict[tuple[str, str], set[asyncio.Event]] = {}

    # Life

    async def start(self) -> None:
        """Begin to watch. Returns at once; await `loaded` for the first full picture."""
        if not self._tasks:
            self._told(self.health())
            self._tasks = [
                asyncio.create_task(self._follow(one), name=f"watch {one.source.label}")
                for one in self._followed
            ]

    async def loaded(self) -> None:
        """Wait until every collection has been loaded once or was denied.

        Raises
        ------
        DeniedError
            The account may not see pods, without which nothing can be promised.
        """
        await self._loaded.wait()
        for one in self._followed:
            if one.source.required and one.health is Health.DENIED:
                raise DeniedError(
                    f"may not be listed and watched: {one.problem}",
                    kind=one.source.kind.value,
                    namespace=one.source.namespace,
                )

    @property
    def is_loaded(self) -> bool:
        return self._loaded.is_set()

    async def stop(self) -> None:
        """End all watches and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks = []

    def health(self) -> dict[str, Health]:
        """Say how well each collection is known, by its name."""
        return {one.source.label: one.health for one in self._followed}

    def health_of(self, label: str) -> Health | None:
        """Say how well one collection is known, by its name; None if it is not watched."""
        return next((one.health for one in self._followed if one.source.label == label), None)

    def as_of(self) -> datetime:
        """Say until when the pods are known: now, or since when the API server does not answer."""
        silent = [
            one.since
            for one in self._followed
            if one.source.required and one.health is not Health.LIVE and one.since is not None
        ]
        return min(silent, default=self._clock())

    # Waiting for one pod

    @asynccontextmanager
    async def following(self, namespace: str, name: str) -> AsyncIterator[asyncio.Event]:
        """Give an event that is set at each change of a pod or of its events; clear it before you look."""
        changed = asyncio.Event()
        key = (namespace, name)
        self._waiters.setdefault(key, set()).add(changed)
        try:
            yield changed
        finally:
            waiting = self._waiters[key]
            waiting.discard(changed)
            if not waiting:
                del self._waiters[key]

    # Following one collection

    async def _follow(self, one: _Followed) -> None:
        version, delay = "", FIRST_DELAY
        while True:
            try:
                version = version or await self._load(one)
                version = await self._watch(one, version)
                delay = FIRST_DELAY
                await asyncio.sleep(delay)
            except GoneError:
                version = ""
            except DeniedError as error:
                version = ""
                self._deny(one, error)
                await asyncio.sleep(DENIED_DELAY)
            except (KubeError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                delay = await self._retry_later(one, str(error), delay)
            except Exception as error:
                log.error("cluster watch: source=%s", one.source.label, exc_info=error)
                delay = await self._retry_later(one, repr(error), delay)

    async def _retry_later(self, one: _Followed, problem: str, delay: float) -> float:
        """Note what went wrong and wait; gives the next delay."""
        self._note(one, Health.STALE if one.health is Health.LIVE else one.health, problem)
        await asyncio.sleep(delay)
        return min(delay * 2, LONGEST_DELAY)

    async def _load(self, one: _Followed) -> str:
        """List a collection; what is not in the list any more is gone."""
        found: set[str] = set()
        version = ""
        async for items, as_of in pages(one.source):
            version = as_of
            for number, item in enumerate(items, 1):
                found.add(self._put(one.source.kind, item))
                if number % BATCH == 0:
                    await asyncio.sleep(0)
        for name in one.names - found:
            self._drop(one.source.kind, name)
        one.names = found
        self._store.seen(one.source.kind, one.source.namespace)
        self._note(one, Health.LIVE)
        return version

    async def _watch(self, one: _Followed, version: str) -> str:
        """Follow a collection until the server ends it; gives the version to go on from."""
        async for change, item in changes(one.source, version):
            version = item["metadata"].get("resourceVersion") or version
            if one.health is not Health.LIVE:
                self._note(one, Health.LIVE)
            if change == "DELETED":
                metadata = item["metadata"]
                name = "/".join([metadata.get("namespace", ""), metadata["name"]])
                one.names.discard(name)
                self._drop(one.source.kind, name)
            elif change != "BOOKMARK":
                one.names.add(self._put(one.source.kind, item))
        return version

    def _put(self, kind: Kind, item: dict[str, Any]) -> str:
        """Take in one object; one that cannot be read must not end the watch of all others."""
        try:
            name = self._store.put(kind, item, self._clock())
        except (KeyError, TypeError, ValueError) as error:
            log.warning("cluster watch: object could not be read: kind=%s error=%r", kind.value, error)
            return ""
        if kind is Kind.PODS:
            self._wake(item["metadata"])
        elif kind is Kind.EVENTS:
            self._wake(item.get("involvedObject") or {})
        return name

    def _drop(self, kind: Kind, name: str) -> None:
        self._store.drop(kind, name)
        if kind is Kind.PODS:
            namespace, _, plain = name.rpartition("/")
            self._wake({"namespace": namespace, "name": plain})

    def _wake(self, about: dict[str, Any]) -> None:
        for changed in self._waiters.get((about.get("namespace", ""), about.get("name", "")), ()):
            changed.set()

    def _deny(self, one: _Followed, error: DeniedError) -> None:
        self._store.lose(one.source.kind, one.source.namespace)
        one.names = set()
        self._note(one, Health.DENIED, str(error))

    def _note(self, one: _Followed, health: Health, problem: str = "") -> None:
        if (health, problem) != (one.health, one.problem):
            level = logging.INFO if health is Health.LIVE or not one.source.required else logging.WARNING
            log.log(level, "cluster watch: source=%s health=%s problem=%s", one.source.label, health, problem)
        if health is not one.health:
            one.since = self._clock()
            self._told({one.source.label: health})
        one.health, one.problem = health, problem
        if all(each.health in {Health.LIVE, Health.DENIED, Health.STALE} for each in self._followed):
            self._loaded.set()


class ClusterWatch(Watch):
    """Keeps a `ClusterState` up to date, and hands it out."""

    def __init__(
        self,
        state: ClusterState,
        sources: Iterable[Source],
        *,
        clock: Callable[[], datetime] = utc_now,
        told: Callable[[Mapping[str, Health]], None] | None = None,
    ) -> None:
        super().__init__(state, sources, clock=clock, told=told)
        self.state = state

    def snapshot(self) -> Snapshot:
        """Give the cluster as it is known now."""
        return self.state.snapshot(self._clock())

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Give one pod as it is known now."""
        return self.state.pod(namespace, name)

    def events(self, uid: str) -> tuple[Event, ...]:
        """Give the events of one object, oldest first."""
        return self.state.events.of(uid)
