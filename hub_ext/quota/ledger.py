"""Reservations: what starts have been promised before the cluster shows it.

A start takes its reservation before the pod is created, in the same step that checks the limits, so that
two starts cannot be promised the same room. What the cluster shows is counted from the cluster; a reservation
adds only what is not visible there yet.

* `STARTING`: a start is under way. It counts whatever the cluster shows: a pod may be deleted and made again.
* `SETTLING`: the start is over, with a pod or without. It counts until the cluster shows that pod (which then
  counts by itself) or until `SETTLE` has passed, by when a pod that exists has been seen.

A hub that restarts begins with an empty ledger and reserves only once it has loaded the cluster. Starts of
the old hub are dead by then: what they created is visible, and the API server's own quota is the last word.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from .arithmetic import NOTHING, Resources
from .policy import Limit, check
from .usage import Holding, Observed, Owner, Usage, sum_of
from .verdicts import Refusal

SETTLE: Final = timedelta(seconds=30)
"""Longest time from a pod's creation until the watch has shown it. A pod that comes later was never there."""


class State(StrEnum):
    """Where a reservation is."""

    STARTING = "starting"
    SETTLING = "settling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A promise to one start."""

    holding: Holding
    state: State
    since: datetime
    """When it came into this state (aware)."""
    uid: str = ""
    """Of the pod that a start ended with; empty while that is not known."""
    before: tuple[Holding, ...] = ()
    """What earlier starts of the server may have left behind; a new pod of its name ends that."""

    @property
    def holdings(self) -> tuple[Holding, ...]:
        return (self.holding, *self.before)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All promises of one hub by the key of the server. Every step gives a new ledger."""

    promises: Mapping[str, Reservation] = field(default_factory=dict)

    def reserve(
        self,
        holding: Holding,
        observed: Observed,
        limits: Sequence[Limit],
        *,
        now: datetime,
    ) -> tuple[Ledger, Refusal | None]:
        """Promise room to a start, or say why not; the ledger is unchanged then.

        A server that starts again replaces its own promise, and does not compete with its own old pod.
        """
        usage = self.usage(observed, holding.owner, without=holding.key)
        refusal = check(holding.taken, usage, limits, containers=holding.containers)
        if refusal is not None:
            return self, refusal
        earlier = self.promises.get(holding.key)
        before = tuple(dict.fromkeys(earlier.holdings)) if earlier else ()
        promise = Reservation(holding=holding, state=State.STARTING, since=now, before=before)
        return Ledger({**self.promises, holding.key: promise}), None

    def adjust(
        self, holding: Holding, observed: Observed, limits: Sequence[Limit]
    ) -> tuple[Ledger, Refusal | None]:
        """Make a promise what the start's pod will really take, or say why it cannot be.

        Raises
        ------
        KeyError
            Nothing is promised to that server.
        """
        promise = self.promises[holding.key]
        before = promise.holding
        if (before.owner, before.taken) != (holding.owner, holding.taken):
            usage = self.usage(observed, holding.owner, without=holding.key)
            refusal = check(holding.taken, usage, limits, containers=holding.containers)
            if refusal is not None:
                return self, refusal
        return Ledger({**self.promises, holding.key: replace(promise, holding=holding)}), None

    def settle(self, key: str, *, now: datetime, uid: str = "") -> Ledger:
        """Note that a start is over: with the pod `uid`, or with one that may exist."""
        promise = self.promises.get(key)
        if promise is None or promise.state is State.SETTLING:
            return self
        before = () if uid else promise.before
        settled = replace(promise, state=State.SETTLING, since=now, uid=uid, before=before)
        return Ledger({**self.promises, key: settled})

    def withdraw(self, key: str, *, now: datetime) -> Ledger:
        """Take back the promise of a start that created nothing, as when the API server refused the pod."""
        promise = self.promises.get(key)
        if promise is None or not promise.before:
            return self.release(key)
        latest, *others = promise.before
        left = Reservation(holding=latest, state=State.SETTLING, since=now, before=tuple(others))
        return Ledger({**self.promises, key: left})

    def release(self, key: str) -> Ledger:
        """Forget a server that is known to have no pod."""
        if key not in self.promises:
            return self
        return Ledger({other: promise for other, promise in self.promises.items() if other != key})

    def reconcile(self, observed: Observed, *, now: datetime) -> Ledger:
        """Drop the settled promises that the cluster has taken over or that led to nothing."""
        kept = {
            key: promise
            for key, promise in self.promises.items()
            if promise.state is State.STARTING
            or (not observed.has_pod(promise.uid) and now - promise.since < SETTLE)
        }
        return self if len(kept) == len(self.promises) else Ledger(kept)

    def usage(self, observed: Observed, owner: Owner, *, without: str = "") -> Usage:
        """Add up what the cluster shows and what is promised beyond it, as it counts for `owner`.

        `without` leaves one server out, with its pods: the one that asks.
        """
        counted = [
            extra
            for promise in self.promises.values()
            if promise.holding.key != without
            for extra in _beyond(promise, observed.of(promise.holding.key))
        ]
        own = observed.of(without) if without else ()
        return observed.usage(owner) + sum_of(counted, owner) - sum_of(own, owner)


def _beyond(promise: Reservation, shown: Sequence[Holding]) -> Iterable[Holding]:
    """Give what a promise adds to the pods of the same server that the cluster shows, owner by owner."""
    if not promise.before:
        if not shown:
            yield promise.holding
            return
        if [(one.owner, one.taken) for one in shown] == [(promise.holding.owner, promise.holding.taken)]:
            return
    for owner in dict.fromkeys(holding.owner for holding in promise.holdings):
        promised, visible = _peak(promise.holdings, owner), _peak(shown, owner)
        if extra := promised.peak(visible) - visible:
            yield replace(promise.holding, owner=owner, taken=extra)


def _peak(holdings: Iterable[Holding], owner: Owner) -> Resources:
    """Give the largest that one server can take: its pods follow each other, they do not add up."""
    most = NOTHING
    for holding in holdings:
        if holding.owner == owner:
            most = most.peak(holding.taken)
    return most
