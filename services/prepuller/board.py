"""The picture of nodes and images that admins look at.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hub_ext.cluster.images import short_name
from hub_ext.cluster.texts import span
from hub_ext.units import gib

from .picture import Pair, Picture, Sight
from .places import closed
from .plan import Plan, Wait
from .reasons import HOLD_TEXTS, TEXTS, Evidence, State
from .summary import Summary, Warmth

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
class Row:
    """One image in one pool."""

    image: str
    full: str
    profiles: str
    warm: str
    facts: str
    cells: tuple[Cell | None, ...]
    """One for each node of the pool; None where the image does not belong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One pool."""

    title: str
    nodes: tuple[str, ...]
    rows: tuple[Row, ...]


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
    return Section(
        title=title,
        nodes=tuple(nodes),
        rows=tuple(
            Row(
                image=short_name(one.want.image.rpartition("/")[2]),
                full=one.want.image,
                profiles=", ".join(one.profiles),
                warm=f"{one.warm} of {one.nodes}",
                facts=", ".join(_facts(one)),
                cells=tuple(_cell((one.want.id, node), picture, made) for node in nodes),
            )
            for one in images
        ),
    )


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
