"""The stops that are under way: begun, judged once more in the last moment, and told of when they have ended.

Shell: starts tasks, sends notices, counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from . import notices
from .alarms import note
from .book import Book
from .breaker import is_idle_stop
from .facts import Facts, HubFacts, PodFacts
from .metrics import CullerMetrics
from .notify import Notifier
from .observe import Key
from .stopping import Outcome, Stopper
from .verdict import Action, Verdict

log = logging.getLogger(__name__)


class Stops:
    """One task for each server that is being stopped."""

    def __init__(
        self, book: Book, stopper: Stopper, notifier: Notifier, metrics: CullerMetrics, *, page: str
    ) -> None:
        self._book, self._stopper = book, stopper
        self._notifier, self._metrics, self._page = notifier, metrics, page
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    @property
    def keys(self) -> Collection[Key]:
        """Servers whose stop is under way."""
        return self._tasks.keys()

    def begin(self, key: Key, verdict: Verdict) -> None:
        """Begin to stop a server; what goes wrong with it ends only this."""
        if is_idle_stop(verdict):
            self._book.memory.stopped.append(self._book.clock())
        facts = self._book.judged[key].facts
        task = asyncio.create_task(self._stop(facts, verdict), name=f"stop {key[0]}/{key[1]}")
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: Key, task: asyncio.Task[None]) -> None:
        del self._tasks[key]
        if not task.cancelled() and (error := task.exception()):
            log.error("stop went wrong: user=%r server=%r error=%r", *key, error, exc_info=error)

    async def _stop(self, facts: Facts, verdict: Verdict) -> None:
        key, book = facts.key, self._book

        async def still_due(hub: HubFacts, pod: PodFacts | None) -> bool:
            return await self._is_still_due(key, verdict, hub, pod)

        note("stopping", key, verdict.reason)
        outcome = await self._stopper.stop(key, facts.pod, still_due)
        self._metrics.stops.labels(verdict.reason, outcome).inc()
        note("stop-ended", key, verdict.reason, outcome=outcome)
        if outcome in _ENDED:
            book.observer.view.servers.pop(key, None)
            book.forget()
        if outcome in _ENDED - {Outcome.GONE}:
            self._notifier.send(notices.receipt(*key, verdict, page=self._page))
        if outcome in _BAD:
            pod = facts.pod or PodFacts()
            text = f"{facts.label}: pod {pod.name}, claims {', '.join(pod.claims) or 'none'}."
            self._notifier.send(notices.alert(f"A stop ended badly: {outcome}", text))

    async def _is_still_due(self, key: Key, verdict: Verdict, hub: HubFacts, pod: PodFacts | None) -> bool:
        """Judge again what was read again; metrics are asked for anew unless they are of this moment."""
        book = self._book
        track = book.memory.tracks.get(key)
        if track is None or hub.started != track.started or (pod is None and book.observer.sees_pods):
            return False
        await book.observer.metrics(no_older_than=book.every / 2)
        again = book.look_again(key, hub, pod)
        return again.action is Action.STOP and again.limit == verdict.limit

    async def drain(self) -> None:
        """Wait for all of them."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def close(self) -> None:
        """Break them off: what the hub was told goes on, the rest is due again later."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_ENDED: Final = frozenset(
    {Outcome.STOPPED, Outcome.UNVERIFIED, Outcome.POD_REMAINS, Outcome.CLAIM_GONE, Outcome.GONE}
)
_BAD: Final = frozenset({Outcome.POD_REMAINS, Outcome.CLAIM_GONE})
