"""What one user may start now: limits, room, and what the cluster has free, in one answer.

The page, the JSON for programs and `gpu-workspaces quota` ask the same function. It foresees, it does not
promise: a start is checked again when it reserves, and finally by the API server.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..catalog.compose import Workspace
from ..catalog.model import Catalog
from ..quota.arithmetic import Resources
from ..quota.demand import Weights, asked_by
from ..quota.namespace import charge, expect
from ..quota.policy import Limit, Room, check, limits_for, room
from ..quota.texts import room as room_text
from ..quota.usage import Usage
from ..quota.verdicts import Refusal, Scope
from .capacity import Availability, Supply, can_scale
from .snapshot import Snapshot
from .supplies import Supplies
from .waits import NOTHING_USUAL, Usual
from .warmth import NOT_SEEN, Warmth, start_text
from .zones import warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What applies to every judgement of one hub."""

    catalog: Catalog
    weights: Weights
    _limits: dict[str, tuple[Limit, ...]] = field(default_factory=dict, compare=False, repr=False)

    def limits(self, team: str) -> tuple[Limit, ...]:
        """Give the limits that apply to members of a team; a catalog does not change, so once is enough."""
        if team not in self._limits:
            self._limits[team] = limits_for(self.catalog, team)
        return self._limits[team]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is seen of the cluster."""

    snapshot: Snapshot
    supplies: Supplies
    """One for all judgements of a hub."""
    namespace: str = ""
    """Where the pod would be; its quotas are asked too, if they can be seen."""
    usual: Usual = NOTHING_USUAL
    """What starts of this kind took lately."""
    home_zones: frozenset[str] = frozenset()
    """Zones that the home can be attached in; empty where there is none, or where they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One workspace as one user could start it now."""

    asked: Resources
    refusal: Refusal | None
    """Why not, by the limits or by the namespace's quota; None if they may."""
    room: Room
    availability: Availability
    warmth: Warmth = NOT_SEEN
    """Of the nodes that have room for it."""
    usual: Usual = NOTHING_USUAL
    warning: str = ""
    """What keeps it from a start that nothing forbids: a home in another zone."""

    @property
    def allowed(self) -> bool:
        return self.refusal is None

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        return {
            "allowed": self.allowed,
            "refusal": self.refusal.as_dict() if self.refusal else None,
            "room": {"user": self.room.user, "team": self.room.team, "cluster": self.room.cluster},
            "supply": self.availability.supply.value,
            "free": self.availability.free,
            "exact": self.availability.exact,
            "start": self.warmth.as_dict(self.usual),
            "text": summary(self),
        }


def judge(workspace: Workspace, team: str, *, rules: Rules, usage: Usage, view: View) -> Offer:
    """Say whether and how often a workspace could be started now.

    `usage` is what counts for the user, with what is promised beyond the cluster: see `Bookings.usage`.
    """
    asked, limits = asked_by(workspace, rules.weights), rules.limits(team)
    return Offer(
        asked=asked,
        refusal=check(asked, usage, limits) or _foreseen(workspace, asked, view),
        room=room(asked, usage, limits),
        availability=view.supplies.of(view.snapshot, asked, workspace.pool, workspace.pool_name),
        warmth=view.supplies.warmth(
            view.snapshot, asked, workspace.pool, workspace.pool_name, workspace.reference
        ),
        usual=view.usual,
        warning=_warning(workspace, asked, view),
    )


def _warning(workspace: Workspace, asked: Resources, view: View) -> str:
    if not view.home_zones or view.snapshot.nodes is None:
        return ""
    zones = view.supplies.zones(view.snapshot, asked, workspace.pool, workspace.pool_name)
    return warning(view.home_zones, zones, scales=can_scale(workspace.pool, asked))


def _foreseen(workspace: Workspace, asked: Resources, view: View) -> Refusal | None:
    if not view.namespace:
        return None
    quotas = view.snapshot.quotas_of(view.namespace) or ()
    ranges = view.snapshot.limit_ranges_of(view.namespace)
    return expect(_spec(workspace, asked), quotas, ranges) if quotas or ranges else None


def charged(workspace: Workspace, asked: Resources) -> Resources:
    """Say what a workspace adds to quotas of its namespace, under all the keys that they may use."""
    return charge(_spec(workspace, asked))


def _spec(workspace: Workspace, asked: Resources) -> dict[str, Any]:
    return {"containers": [{"name": "notebook", "resources": _resources(workspace, asked)}]}


def _resources(workspace: Workspace, asked: Resources) -> Mapping[str, Mapping[str, str]]:
    """Write the workspace as its container will ask for it."""
    devices = {name: str(number) for name, number in asked.items() if "/" in name}
    requests = {"cpu": f"{workspace.cpu.request}m", "memory": str(workspace.memory.request)}
    limits = {
        **({"cpu": f"{workspace.cpu.limit}m"} if workspace.cpu.limit else {}),
        **({"memory": str(workspace.memory.limit)} if workspace.memory.limit else {}),
    }
    return {"requests": {**requests, **devices}, "limits": {**limits, **devices}}


_SUPPLY = {
    Supply.FULL: "all in use now",
    Supply.WILL_SCALE: "a node is added when you start it",
    Supply.NO_NODE: "no node for it at the moment",
    Supply.NO_SCALE_UP: "no node offers it, and none is added for it",
    Supply.NOT_OFFERED: "no node offers it at the moment",
    Supply.UNKNOWN: "",
}


def supply_text(availability: Availability) -> str:
    """Say what the cluster has: ``3 free now``; empty where that is not known."""
    if availability.supply is not Supply.FREE:
        return _SUPPLY[availability.supply]
    return f"{availability.free} free now" if availability.exact else f"up to {availability.free} free now"


def parts(offer: Offer) -> tuple[str, ...]:
    """Say it in parts, ``3 free now`` and ``1 more for you``, and nothing about what is not known.

    What bounds all users together is only told where it leaves less than the other limits.
    """
    together = offer.room.cluster if offer.room.cluster == offer.room.least else None
    found = (
        supply_text(offer.availability),
        room_text(Scope.USER, offer.room.user),
        room_text(Scope.TEAM, offer.room.team),
        room_text(Scope.CLUSTER, together),
        start_text(offer.warmth, offer.usual, offer.availability.supply) if offer.allowed else "",
    )
    return tuple(part for part in found if part)


def summary(offer: Offer) -> str:
    """Say it in one line: ``3 free now · 1 more for you · 2 more for your team · warm start``."""
    return " · ".join(parts(offer))


NODES_UNSEEN: Final = "What is free is not known: the hub may not see the nodes of the cluster."
NOT_LOADED: Final = "What is free, and how many more you may start, is not known at the moment."
