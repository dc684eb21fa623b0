"""The picture of nodes and images that admins look at.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from hub_ext.cluster.images import short_name
from hub_ext.cluster.texts import span
from hub_ext.units import gib

from .picture import Pair, Picture, Sight
from .places import closed
from .plan import Plan, Wait
from .reasons import HOLD_TEXTS, TEXTS, Evidence, Hold, State
from .summary import Summary, Warmth
from .wants import Tier

_EVIDENCE: Final = {
    Evidence.POD: "",
    Evidence.LISTED: "the node lists it",
    Evidence.LISTED_FOR_OTHERS: "the node lists it, but who may use it is not known",
    Evidence.NOT_LISTED: "the node does not list it",
    Evidence.LIST_CUT: "the node lists only its largest images",
    Evidence.NO_LIST: "the node lists no images",
}
MARKS: Final = {
    State.PULLED: "\N{CHECK MARK}",
    State.PULLING: "\N{DOWNWARDS ARROW}",
    State.FAILED: "\N{MULTIPLICATION SIGN}",
    State.ABSENT: "\N{MIDDLE DOT}",
    State.UNKNOWN: "?",
}
"""States without their colors."""


NAMED: Final = 40
"""Most nodes whose names have room above their cells."""
SHOWN: Final = 200
"""Most nodes that have a cell each: more are megabytes for a browser, and nothing for an eye."""
TOLD: Final = 30
"""Most names in a part of a bar."""


class Look(StrEnum):
    """How a pool is drawn."""

    NAMED = "named"
    WIDE = "wide"
    MANY = "many"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One image on one node."""

    node: str
    state: State
    mark: str
    text: str
    pinned: bool
    closed: bool
    """The node takes no workspace now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The nodes of a large pool that are alike for one image."""

    state: State
    mark: str
    number: int
    begin: float
    """Where its part of the bar begins, in percent."""
    width: float
    nodes: tuple[str, ...] = ()
    """Some of them by name, where there is something to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One image in one pool."""

    image: str
    digest: str
    full: str
    profiles: str
    warm: str
    facts: str
    cells: tuple[Cell | None, ...] = ()
    """One for each node of the pool; None where the image does not belong."""
    parts: tuple[Part, ...] = ()
    """In place of cells, where there would be too many to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One pool."""

    title: str
    nodes: tuple[tuple[str, str], ...]
    """Names, whole and without the domain that all of them have."""
    rows: tuple[Row, ...]
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """All of it in one line."""

    warm: int
    places: int
    flying: int
    waiting: tuple[str, ...]
    """How many wait, and why."""


def build_headline(summary: Summary) -> Headline:
    """Count images on nodes that users can be given now."""
    required = [one for one in summary.images if one.tier is Tier.REQUIRED]
    return Headline(
        warm=sum(one.warm for one in required),
        places=sum(one.nodes for one in required),
        flying=sum(summary.in_flight.values()),
        waiting=tuple(
            f"{number} {'waits' if number == 1 else 'wait'}: {HOLD_TEXTS[Hold(hold)]}"
            for hold, number in summary.holds.items()
        ),
    )


def size_text(number: int | None) -> str:
    """Write an amount of disk that may not be known."""
    return "not known" if number is None else gib(number)


def build_board(picture: Picture, made: Plan, summary: Summary) -> tuple[Section, ...]:
    """Lay out all pools in the catalog's order, nodes by name and number."""
    pools: dict[str, list[Warmth]] = {}
    for one in summary.images:
        pools.setdefault(one.pool, []).append(one)
    return tuple(_section(name, images, picture, made) for name, images in pools.items())


def _section(name: str, images: Sequence[Warmth], picture: Picture, made: Plan) -> Section:
    nodes = sorted(picture.layout.pools[name], key=_natural)
    pool = picture.desired.pools[name]
    title = (pool.display_name if pool else "") or name or "Placed by the hub"
    look = Look.NAMED if len(nodes) <= NAMED else Look.WIDE if len(nodes) <= SHOWN else Look.MANY
    return Section(
        title=title,
        nodes=tuple(zip(nodes, _without_domain(nodes), strict=True)),
        rows=tuple(_row(one, nodes, look, picture, made) for one in images),
        look=look,
    )


def _row(one: Warmth, nodes: Sequence[str], look: Look, picture: Picture, made: Plan) -> Row:
    name, _, digest = short_name(one.want.image.rpartition("/")[2]).partition("@")
    row = Row(
        image=name,
        digest=digest,
        full=one.want.image,
        profiles=", ".join(one.profiles),
        warm=f"{one.warm} of {one.nodes}",
        facts=", ".join(_facts(one)),
    )
    if look is Look.MANY:
        return replace(row, parts=tuple(_parts(one.want.id, nodes, picture)))
    return replace(row, cells=tuple(_cell((one.want.id, node), picture, made) for node in nodes))


def _parts(want: str, nodes: Sequence[str], picture: Picture) -> Iterator[Part]:
    """Divide the nodes that an image belongs on by what is known, in the order of `State`."""
    by_state: dict[State, list[str]] = {}
    for node in nodes:
        sight = picture.sights.get((want, node))
        if sight is not None:
            by_state.setdefault(sight.state, []).append(node)
    every, begun = sum(map(len, by_state.values())), 0
    for state in State:
        if names := by_state.get(state):
            yield Part(
                state=state,
                mark=MARKS[state],
                number=len(names),
                begin=100 * begun / every,
                width=100 * len(names) / every,
                nodes=() if state is State.PULLED else tuple(names[:TOLD]),
            )
            begun += len(names)


def _without_domain(names: Sequence[str]) -> list[str]:
    """Leave out the domain where it tells nodes apart as little as it names them."""
    parts = [name.partition(".") for name in names]
    alike = len({domain for _, _, domain in parts}) == 1
    return [head for head, _, _ in parts] if alike else [*names]


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part or 0) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]


def _facts(one: Warmth) -> Iterator[str]:
    if one.bytes:
        yield gib(one.bytes)
    if one.usual_seconds is not None:
        yield f"usually {span(timedelta(seconds=one.usual_seconds))}"
    if one.tier:
        yield "kept for going back"
    if one.want.secrets:
        yield f"with {', '.join(one.want.secrets)}"
    if one.want.moves:
        yield "a tag that may move"


def _cell(pair: Pair, picture: Picture, made: Plan) -> Cell | None:
    sight = picture.sights.get(pair)
    if sight is None:
        return None
    return Cell(
        node=pair[1],
        state=sight.state,
        mark=MARKS[sight.state],
        text=describe(sight, made.waits.get(pair), picture.at),
        pinned=sight.pinned,
        closed=closed(picture.machines[pair[1]]) is not None,
    )


def describe(sight: Sight, wait: Wait | None, now: datetime) -> str:
    """Say in one line what is known, since when, from what, and what it waits for."""
    parts = [sight.state.value]
    if sight.since is not None:
        parts.append(f"for {span(max(now - sight.since, timedelta(0)))}")
    if sight.reason is not None:
        parts.append(f"{sight.reason.value}: {TEXTS[sight.reason]}")
    if _EVIDENCE[sight.evidence]:
        parts.append(_EVIDENCE[sight.evidence])
    if wait is not None:
        until = f", for {span(wait.until - now)}" if wait.until is not None else ""
        parts.append(f"{HOLD_TEXTS[wait.hold]}{until}")
    return "; ".join(parts)
