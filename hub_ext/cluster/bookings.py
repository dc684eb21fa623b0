"""The hub's one ledger, kept beside its one watch.

All methods are synchronous: between looking and promising nothing else runs, so two starts in the same
instant cannot be promised the same room.

Shell: reads the clock and the watch's state; no network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from ..quota.ledger import Ledger
from ..quota.policy import Limit
from ..quota.usage import Holding, Owner, Usage
from ..quota.verdicts import Refusal
from .state import ClusterState
from .watch import utc_now


class Bookings:
    """Promises room to starts. Await `ClusterWatch.loaded` before the first one."""

    def __init__(
        self,
        state: ClusterState,
        *,
        clock: Callable[[], datetime] = utc_now,
        as_of: Callable[[], datetime] | None = None,
    ) -> None:
        """`as_of` says until when the state is known; a promise does not run out while nothing is heard."""
        self._state = state
        self._clock = clock
        self._as_of = as_of or clock
        self._ledger = Ledger()

    def reserve(self, holding: Holding, limits: Sequence[Limit]) -> Refusal | None:
        """Promise room to a start, or say why not."""
        now = self._settled()
        self._ledger, refusal = self._ledger.reserve(holding, self._state.observed, limits, now=now)
        return refusal

    def adjust(self, holding: Holding, limits: Sequence[Limit]) -> Refusal | None:
        """Make the promise to a start what its pod will really take, or say why it cannot be."""
        self._settled()
        self._ledger, refusal = self._ledger.adjust(holding, self._state.observed, limits)
        return refusal

    def started(self, key: str, uid: str) -> None:
        """Note that a start ended with this pod."""
        self._ledger = self._ledger.settle(key, now=self._clock(), uid=uid)

    def failed(self, key: str) -> None:
        """Note that a start failed, and that a pod of it may exist: it counts until that is known."""
        self._ledger = self._ledger.settle(key, now=self._clock())

    def refused(self, key: str) -> None:
        """Note that the API server created no pod."""
        self._ledger = self._ledger.withdraw(key, now=self._clock())

    def gone(self, key: str) -> None:
        """Note that the server is known to have no pod, as after a stop that waited for it."""
        self._ledger = self._ledger.release(key)

    def usage(self, owner: Owner, *, without: str = "") -> Usage:
        """Say what counts for an owner: the cluster's pods, and what is promised beyond them."""
        self._settled()
        return self._ledger.usage(self._state.observed, owner, without=without)

    def promised(self) -> tuple[Holding, ...]:
        """List the starts whose pods the cluster does not show yet."""
        self._settled()
        found = (promise.holding for promise in self._ledger.promises.values())
        return tuple(one for one in found if not self._state.observed.of(one.key))

    def _settled(self) -> datetime:
        now = self._clock()
        self._state.expire(now)
        self._ledger = self._ledger.reconcile(self._state.observed, now=self._as_of())
        return now
