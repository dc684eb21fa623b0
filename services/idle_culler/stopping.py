"""Stopping: read again, stop, make sure that the pod is gone and the volumes are there.

Only ever stops: nothing here can remove a server or a volume. Some stops run at a time, the others wait; a
stop that goes wrong ends only itself.

Shell: asks the hub and Kubernetes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from hub_ext.errors import RemoteError

from ..hub import Hub, Stop
from .facts import HubFacts, PodFacts
from .observe import Key, Observer

log = logging.getLogger(__name__)

StillDue = Callable[[HubFacts, PodFacts | None], Awaitable[bool]]
POLL: Final = 2.0
"""Seconds between two looks for a pod that is going."""


class Outcome(StrEnum):
    """What came of a stop."""

    STOPPED = "stopped"
    """The pod is gone and its volumes are there."""
    UNVERIFIED = "unverified"
    """The hub says that it stopped; that could not be looked at."""
    CHANGED = "changed"
    """Not stopped: something moved in the last moment."""
    GONE = "gone"
    """It did not run any more."""
    FAILED = "failed"
    """The hub did not stop it; tried again at the next pass."""
    POD_REMAINS = "pod-remains"
    """The hub says that it stopped, and its pod still runs: it still holds its GPU."""
    CLAIM_GONE = "claim-gone"
    """A volume claim of the pod is not there any more."""


class Stopper:
    """Stops servers, a bounded number at a time."""

    def __init__(
        self,
        hub: Hub,
        observer: Observer,
        *,
        clock: Callable[[], datetime],
        concurrency: int = 20,
        within: timedelta = timedelta(minutes=5),
        poll: float = POLL,
    ) -> None:
        self._hub, self._observer, self._clock = hub, observer, clock
        self._places = asyncio.Semaphore(concurrency)
        self._within, self._poll = within, poll

    async def stop(self, key: Key, pod: PodFacts | None, still_due: StillDue) -> Outcome:
        """Stop one server.

        Parameters
        ----------
        still_due
            Judges what was read again, in the last moment before the stop.
        """
        try:
            async with self._places:
                outcome = await self._ask(key, pod, still_due)
        except RemoteError as error:
            log.warning("stop failed: user=%s server=%s error=%s", *key, error)
            return Outcome.FAILED
        if outcome is not Outcome.STOPPED:
            return outcome
        try:
            return await self._verify(key, pod)
        except RemoteError as error:
            log.warning("stop not verified: user=%s server=%s error=%s", *key, error)
            return Outcome.UNVERIFIED

    async def _ask(self, key: Key, pod: PodFacts | None, still_due: StillDue) -> Outcome:
        hub = await self._observer.server(key)
        if hub is None:
            return Outcome.GONE
        current = await self._observer.again(pod) if pod else None
        if (pod is not None and current is None) or not await still_due(hub, current):
            return Outcome.CHANGED
        answer = await self._hub.stop_server(*key)
        return Outcome.GONE if answer is Stop.GONE else Outcome.STOPPED

    async def _verify(self, key: Key, pod: PodFacts | None) -> Outcome:
        deadline = self._clock() + self._within
        while not await self._is_gone(key, pod):
            if self._clock() >= deadline:
                return Outcome.POD_REMAINS
            await asyncio.sleep(self._poll)
        if pod is None or not self._observer.sees_pods:
            return Outcome.STOPPED
        for claim in pod.claims:
            if not await self._observer.has_claim(pod.namespace, claim):
                return Outcome.CLAIM_GONE
        return Outcome.STOPPED

    async def _is_gone(self, key: Key, pod: PodFacts | None) -> bool:
        if pod is not None and self._observer.sees_pods:
            return await self._observer.again(pod) is None
        return await self._observer.server(key) is None
