"""Who takes how much: holdings, and their sums by user, team and in all.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from .arithmetic import NOTHING, Resources, total
from .verdicts import Scope

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whom a workspace or a job is charged to."""

    user: str
    team: str = ""
    """Key of the team in the catalog; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one workspace or job takes. `taken` has the servers and GPU equivalents in it."""

    key: str
    """Same for a reservation and for the pod that it becomes: see `server_key`."""
    owner: Owner
    taken: Resources
    containers: Mapping[str, Resources] = field(default_factory=dict, hash=False)
    """Who takes how much within a pod; only used to name them."""


def server_key(namespace: str, user: str, server: str = "") -> str:
    """Name the server of a user; no two of them share a name."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in (namespace, user, server))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What is taken, from the point of view of one owner."""

    user: Resources = NOTHING
    team: Resources = NOTHING
    cluster: Resources = NOTHING

    def within(self, scope: Scope) -> Resources:
        """Give what counts against limits of that scope."""
        return {Scope.USER: self.user, Scope.TEAM: self.team}.get(scope, self.cluster)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            user=self.user + other.user, team=self.team + other.team, cluster=self.cluster + other.cluster
        )

    def __sub__(self, other: Usage) -> Usage:
        if other is _NO_USE:
            return self
        return Usage(
            user=self.user - other.user, team=self.team - other.team, cluster=self.cluster - other.cluster
        )


_NO_USE: Final = Usage()


def share_of(holding: Holding, owner: Owner) -> Usage:
    """Say how one holding counts for `owner`."""
    same_team = bool(owner.team) and holding.owner.team == owner.team
    return Usage(
        user=holding.taken if holding.owner == owner else NOTHING,
        team=holding.taken if same_team else NOTHING,
        cluster=holding.taken,
    )


def sum_of(holdings: Collection[Holding], owner: Owner) -> Usage:
    """Say how many holdings together count for `owner`."""
    if not holdings:
        return _NO_USE
    return Usage(
        user=total(one.taken for one in holdings if one.owner == owner),
        team=total(one.taken for one in holdings if owner.team and one.owner.team == owner.team),
        cluster=total(one.taken for one in holdings),
    )


class Observed:
    """The holdings that the cluster shows, with sums that are kept up to date one holding at a time.

    Adding and removing cost the same however many holdings there are.
    """

    def __init__(self, holdings: Iterable[tuple[str, Holding]] = ()) -> None:
        self._by_uid: dict[str, Holding] = {}
        self._by_key: dict[str, dict[str, Holding]] = {}
        self._users: dict[Owner, Resources] = {}
        self._teams: dict[str, Resources] = {}
        self._all = NOTHING
        for uid, holding in holdings:
            self.put(uid, holding)

    def put(self, uid: str, holding: Holding | None) -> None:
        """Count what the pod with this uid takes, instead of what it took before; None counts nothing."""
        before = self._by_uid.pop(uid, None)
        if before == holding:
            if before is not None:
                self._by_uid[uid] = before
            return
        if before is not None:
            self._change(before.owner, NOTHING - before.taken)
            of_key = self._by_key[before.key]
            del of_key[uid]
            if not of_key:
                del self._by_key[before.key]
        if holding is not None:
            self._by_uid[uid] = holding
            self._by_key.setdefault(holding.key, {})[uid] = holding
            self._change(holding.owner, holding.taken)

    def _change(self, owner: Owner, by: Resources) -> None:
        _shift(self._users, owner, by)
        _shift(self._teams, owner.team, by)
        self._all = self._all + by

    def usage(self, owner: Owner) -> Usage:
        """Give what counts for `owner`."""
        return Usage(
            user=self._users.get(owner, NOTHING),
            team=self._teams.get(owner.team, NOTHING) if owner.team else NOTHING,
            cluster=self._all,
        )

    def owners(self) -> tuple[Owner, ...]:
        """Name everybody who holds something."""
        return tuple(self._users)

    def of(self, key: str) -> tuple[Holding, ...]:
        """Give the holdings of one server: none, one, or an old pod that ends beside the new one."""
        return tuple(self._by_key.get(key, {}).values())

    def has_pod(self, uid: str) -> bool:
        """Say whether the pod with this uid is counted."""
        return uid in self._by_uid

    def __len__(self) -> int:
        return len(self._by_uid)


def _shift(sums: dict[_Key, Resources], key: _Key, by: Resources) -> None:
    after = sums.get(key, NOTHING) + by
    if after:
        sums[key] = after
    else:
        sums.pop(key, None)
