"""What to fetch next, what to let go, and why all the rest waits.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .benefit import Starts, benefit
from .budget import over_budget
from .flight import Flight
from .picture import Pair, Picture
from .places import closed
from .reasons import Blame, Hold
from .release import Drop, Freed, drops, freed
from .settings import Limits, Settings
from .troubles import Troubles, Worked, keys_of, what_worked
from .wants import Tier, Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """One pull to begin now."""

    want: Want
    node: str
    pools: tuple[str, ...]
    """Those that want it there."""
    benefit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a wanted pull does not begin now."""

    hold: Hold
    until: datetime | None = None
    """For a backoff: when it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now. Done twice it does nothing more."""

    fetches: tuple[Fetch, ...] = ()
    drops: tuple[Drop, ...] = ()
    waits: Mapping[Pair, Wait] = field(default_factory=dict)
    """Places without a pod for which none is made now."""
    freed: tuple[Freed, ...] = ()


def plan(
    picture: Picture,
    *,
    settings: Settings,
    troubles: Troubles,
    worked: Worked,
    starts: Starts,
    unneeded: Mapping[str, datetime],
) -> Plan:
    """Say what to do now.

    Parameters
    ----------
    worked
        See `worked_in`.
    unneeded
        See `release.note_unneeded`.
    """
    worth = _worth(picture, settings, starts)
    over = over_budget(picture, settings, worth)
    judge = _Judge(picture, settings.limits, troubles, worked=worked, over=over)
    missing = (pair for pair, place in picture.layout.places.items() if place.tier is Tier.REQUIRED)
    # A pod that is there, or going, is waited for. Of equal worth, where it failed before comes last, so that
    # one bad node is not the first to try each time; else the catalog's order stays.
    order = sorted(
        (pair for pair in missing if pair not in picture.mine),
        key=lambda pair: (-worth[pair], troubles.at(*pair) is not None),
    )
    fetches: list[Fetch] = []
    waits: dict[Pair, Wait] = {}
    for pair in order:
        want = picture.desired.wants[pair[0]]
        wait = judge.wait(want, pair[1])
        if wait is not None:
            waits[pair] = wait
            continue
        judge.flight.begin(want, pair[1])
        pools = tuple(dict.fromkeys(use.pool for use in picture.layout.places[pair].uses))
        fetches.append(Fetch(want=want, node=pair[1], pools=pools, benefit=worth[pair]))
    return Plan(
        fetches=tuple(fetches),
        drops=tuple(drops(picture, settings, over, unneeded)),
        waits=waits,
        freed=freed(picture, unneeded, over),
    )


def worked_in(picture: Picture) -> Worked:
    """Collect when everything last worked."""
    arches = {name: one.architecture for name, one in picture.machines.items()}
    return what_worked(picture.pods, picture.desired.wants, arches)


def _worth(picture: Picture, settings: Settings, starts: Starts) -> dict[Pair, int]:
    by_use = {use: benefit(use, starts, settings, picture.at) for use in picture.desired.uses}
    return {pair: sum(by_use[use] for use in place.uses) for pair, place in picture.layout.places.items()}


class _Judge:
    """Says of one place after the other whether its pull may begin."""

    def __init__(
        self,
        picture: Picture,
        limits: Limits,
        troubles: Troubles,
        *,
        worked: Worked,
        over: frozenset[Pair],
    ) -> None:
        self._picture, self._limits, self._troubles = picture, limits, troubles
        self._worked, self._over = worked, over
        self._closed = {name: closed(machine) for name, machine in picture.machines.items()}
        self.flight = Flight(picture, limits)

    def wait(self, want: Want, node: str) -> Wait | None:
        """Say why a pull waits; None if it may begin."""
        if (hold := self._closed[node]) is not None:
            return Wait(hold=hold)
        if (want.id, node) in self._over:
            return Wait(hold=Hold.OVER_BUDGET)
        if (wait := self._after_trouble(want, node)) is not None:
            return wait
        if (hold := self.flight.full(want, node)) is not None:
            return Wait(hold=hold)
        proven = self._worked.ever((Blame.IMAGE, want.id)) or self.flight.proves_itself(want.id)
        if self._limits.canary and not proven and self.flight.tries(want.id):
            return Wait(hold=Hold.CANARY)
        return None

    def _after_trouble(self, want: Want, node: str) -> Wait | None:
        """Keep away from what failed of late, and let one try before the others."""
        if not self._troubles:
            return None
        architecture = self._picture.machines[node].architecture
        for key, trouble in self._troubles.of(keys_of(want.id, node, want, architecture)):
            if self._worked.since(key, trouble.at):
                continue
            until = trouble.retry_at(self._limits)
            if self._picture.at < until:
                return Wait(hold=Hold.BACKOFF, until=until)
            if self.flight.depends(key):
                return Wait(hold=Hold.CANARY)
        return None
