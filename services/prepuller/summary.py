"""What is warm, in numbers: for the spawn page, for metrics, for the gate and for admins.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final

from .picture import Picture
from .places import closed
from .plan import Plan
from .pods import Step
from .reasons import BLAMES, TEXTS, Blame, State
from .settings import Limits
from .troubles import Trouble, Troubles
from .wants import Tier, Use, Want

ALL_IMAGES: Final = "all images"
"""Subject of a problem that concerns every pull."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """One image in one pool."""

    want: Want
    pool: str
    """Empty for the hub's own placement."""
    profiles: tuple[str, ...]
    """Labels of the versions that use it."""
    tier: Tier
    states: Mapping[State, int]
    """Nodes by what is known, of those that take workspaces now."""
    away: int
    """Nodes of the pool that take nothing now."""
    blocked: int
    """Of the others, those where it failed by the node's own fault: it is full, or refuses pods."""
    usual_seconds: int | None
    """Median of the pulls that were seen in this pool, else anywhere; None if none was."""
    pulls: int
    """How many that is."""
    bytes: int | None
    warm_nodes: tuple[str, ...] = ()
    cold_nodes: tuple[str, ...] = ()
    """Nodes on which workspaces do not find it; of the rest nothing is known."""

    @property
    def warm(self) -> int:
        return self.states.get(State.PULLED, 0)

    @property
    def nodes(self) -> int:
        return sum(self.states.values())

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        return {
            "image": self.want.image,
            "pool": self.pool,
            "profiles": list(self.profiles),
            "required": self.tier is Tier.REQUIRED,
            "warm": self.warm,
            "nodes": self.nodes,
            "states": {state.value: number for state, number in self.states.items()},
            "away": self.away,
            "blocked": self.blocked,
            "usualSeconds": self.usual_seconds,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that keeps images away, told once however many nodes it concerns."""

    subject: str
    """Image, registry or node."""
    trouble: Trouble
    retry_at: datetime

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        one = self.trouble
        return {
            "subject": self.subject,
            "reason": one.reason.value,
            "text": TEXTS[one.reason],
            "detail": one.detail,
            "node": one.node,
            "at": one.at.isoformat(),
            "tries": one.count,
            "retryAt": self.retry_at.isoformat(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All of it at one moment."""

    at: datetime
    catalog: str
    """Which catalog it is about: see `wants.mark_of`."""
    images: tuple[Warmth, ...]
    problems: tuple[Problem, ...]
    in_flight: Mapping[str, int]
    """Pulls under way by registry."""
    holds: Mapping[str, int]
    """Pulls that wait, by why."""
    pins: int

    def warm(self) -> dict[str, Any]:
        """Give what the spawn page asks for."""
        return {
            "images": [
                {
                    "image": one.want.image,
                    "pool": one.pool,
                    "profiles": list(one.profiles),
                    "warmNodes": list(one.warm_nodes),
                    "coldNodes": list(one.cold_nodes),
                    "nodes": one.nodes,
                    "usualSeconds": one.usual_seconds,
                }
                for one in self.images
            ]
        }

    def as_dict(self) -> dict[str, Any]:
        """Give the whole as JSON."""
        return {
            "asOf": self.at.isoformat(),
            "catalog": self.catalog,
            "images": [one.as_dict() for one in self.images],
            "problems": [one.as_dict() for one in self.problems],
            "inFlight": dict(self.in_flight),
            "waiting": dict(self.holds),
            "pins": self.pins,
        }


def summarize(picture: Picture, made: Plan, troubles: Troubles, limits: Limits) -> Summary:
    """Sum up a moment."""
    wants = picture.desired.wants
    flying = (pod for pod in picture.pods if pod.in_flight)
    registries = Counter(wants[pod.want].registry for pod in flying if pod.want in wants)
    return Summary(
        at=picture.at,
        catalog=picture.desired.catalog,
        images=tuple(_warmths(picture)),
        problems=tuple(_problems(picture, troubles, limits)),
        in_flight=registries,
        holds=Counter(wait.hold.value for wait in made.waits.values()),
        pins=sum(1 for pod in picture.pods if pod.step is Step.DONE and not pod.ending),
    )


_COLD: Final = (State.PULLING, State.FAILED, State.ABSENT)


def _warmths(picture: Picture) -> Iterable[Warmth]:
    uses: dict[tuple[str, str], list[Use]] = {}
    for use in picture.desired.uses:
        uses.setdefault((use.pool, use.want), []).append(use)
    open_nodes = {name for name, machine in picture.machines.items() if closed(machine) is None}
    times = _times(picture)
    for (pool, want), why in uses.items():
        nodes: dict[State, list[str]] = {}
        away = blocked = 0
        seconds: list[float] = []
        for node in picture.layout.pools[pool]:
            sight = picture.sights.get((want, node))
            seconds += times.get((want, node), ())
            if sight is not None and node in open_nodes:
                nodes.setdefault(sight.state, []).append(node)
                blocked += sight.reason is not None and BLAMES[sight.reason] is Blame.NODE
            elif sight is not None:
                away += 1
        seconds = seconds or [one for (key, _), found in times.items() if key == want for one in found]
        yield Warmth(
            want=picture.desired.wants[want],
            pool=pool,
            profiles=tuple(dict.fromkeys(use.profile for use in why)),
            tier=min(use.tier for use in why),
            states={state: len(names) for state, names in nodes.items()},
            warm_nodes=tuple(nodes.get(State.PULLED, ())),
            cold_nodes=tuple(name for state in _COLD for name in nodes.get(state, ())),
            away=away,
            blocked=blocked,
            usual_seconds=round(median(seconds)) if seconds else None,
            pulls=len(seconds),
            bytes=picture.sizes.get(want),
        )


def _times(picture: Picture) -> dict[tuple[str, str], list[float]]:
    times: dict[tuple[str, str], list[float]] = {}
    for pod in picture.pods:
        if pod.step is Step.DONE and pod.seconds is not None:
            times.setdefault((pod.want, pod.node), []).append(pod.seconds)
    return times


def _problems(picture: Picture, troubles: Troubles, limits: Limits) -> Iterable[Problem]:
    wants = picture.desired.wants
    for (blame, name), one in troubles:
        want = wants.get(one.want)
        local = blame in {Blame.NODE, Blame.PAIR}
        if want is None or (local and one.node not in picture.machines):
            continue
        subject = want.image if name.startswith(one.want) else name or ALL_IMAGES
        yield Problem(subject=subject, trouble=one, retry_at=one.retry_at(limits))
