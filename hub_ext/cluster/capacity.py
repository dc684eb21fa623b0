"""How many more workspaces of a kind the cluster has room for right now.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..catalog.model import Pool
from ..gpu.resources import is_accelerator
from ..quota.arithmetic import NOTHING, Resources
from .nodes import Node, selects, untolerated


class Supply(StrEnum):
    """What the cluster has for a workspace."""

    FREE = "free"
    FULL = "full"
    """Nodes for it exist, all taken at the moment."""
    WILL_SCALE = "will-scale"
    """No node has room, and one can be added."""
    NO_NODE = "no-node"
    """No node that takes it is there, and none is known to be added."""
    NO_SCALE_UP = "no-scale-up"
    """No node offers the resource that it asks for, and the autoscaler is known to add none for it."""
    NOT_OFFERED = "not-offered"
    """Nodes are there, but none offers the resource that it asks for."""
    UNKNOWN = "unknown"
    """Nodes cannot be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """What the cluster has for one kind of workspace."""

    supply: Supply
    free: int | None = None
    """How many more could be placed now; None if that is not known."""
    exact: bool = True
    """False if pods of other namespaces could not be seen: then `free` is the most there can be."""
    hint: str = ""
    """Another resource name that the same nodes offer, where the asked one is not offered."""
    nodes: int = 0
    """Nodes that take this kind of workspace, full or not."""


UNKNOWN = Availability(supply=Supply.UNKNOWN)


def pool_nodes(nodes: Iterable[Node], pool: Pool | None, asked: Resources) -> tuple[Node, ...]:
    """Give the nodes where a workspace of a pool may be placed, whatever is free there.

    The pool is one to which the hub's own placement was added: see `placement`. Without either, every node
    without a taint counts.
    """
    selector = pool.node_selector if pool else {}
    tolerations = pool.tolerations if pool else ()
    return tuple(
        node
        for node in nodes
        if node.takes_pods and selects(node, selector) and not untolerated(node, tolerations, asked)
    )


def can_scale(pool: Pool | None, asked: Resources) -> bool:
    """Say whether the catalog states that nodes are added to a pool for workspaces that ask for `asked`."""
    return pool is not None and pool.scale_up is not None and not pool.unscaled(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The nodes of a pool, and those of them that are large enough for a workspace when they are empty."""

    nodes: tuple[Node, ...]
    offering: tuple[Node, ...]


def candidates(nodes: Iterable[Node], asked: Resources) -> Candidates:
    """Sort out the nodes of a pool, see `pool_nodes`, by what they offer."""
    found = tuple(nodes)
    return Candidates(
        nodes=found, offering=tuple(one for one in found if asked.goes_into(one.usable, NOTHING))
    )


def count_free(asked: Resources, where: Candidates, used: Mapping[str, Resources]) -> int:
    """Count how often `asked` (Kubernetes resources only) goes into what pods leave of each node."""
    return sum(asked.goes_into(one.usable, used.get(one.name, NOTHING)) for one in where.offering)


def available(
    asked: Resources,
    where: Candidates,
    free: int,
    *,
    exact: bool = True,
    scales: bool = False,
    unscaled: bool = False,
) -> Availability:
    """Say what the cluster has for workspaces that ask for `asked`.

    Parameters
    ----------
    free
        See `count_free`, less those who wait already.
    scales
        Whether nodes of this kind can be added: see `can_scale`.
    unscaled
        Whether nodes are added to the pool, but none for what is asked: see `Pool.unscaled`.
    """
    number = len(where.offering)
    if free > 0:
        return Availability(supply=Supply.FREE, free=free, exact=exact, nodes=number)
    if scales:
        supply = Supply.WILL_SCALE
    elif number:
        supply = Supply.FULL
    elif unscaled:
        supply = Supply.NO_SCALE_UP
    else:
        supply = Supply.NOT_OFFERED if where.nodes else Supply.NO_NODE
    hint = "" if number else _hint(where.nodes, asked)
    return Availability(supply=supply, free=0, exact=exact, hint=hint, nodes=number)


def _hint(nodes: Iterable[Node], asked: Resources) -> str:
    wanted = [name for name in asked if is_accelerator(name)]
    if not wanted:
        return ""
    prefix = wanted[0].partition(".shared")[0]
    others = (name for node in nodes for name in node.usable if is_accelerator(name) and name not in wanted)
    near = [name for name in others if name.startswith(prefix) or prefix.startswith(name)]
    return near[0] if near else ""
