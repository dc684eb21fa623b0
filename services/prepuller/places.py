"""Which nodes an image belongs on, and which of them can take it now.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hub_ext.catalog.model import Pool, Toleration
from hub_ext.cluster.nodes import selects, untolerated
from hub_ext.quota.arithmetic import Resources

from .facts import ARCHITECTURE, OS, Machine
from .reasons import Hold
from .settings import Shared
from .wants import Desired, Tier, Use, Want

_DISK_PRESSURE: Final = "DiskPressure"
_CONDITION: Final = "node.kubernetes.io/"
_MEMORY: Final = "node.kubernetes.io/memory-pressure"
NOTHING_SHARED: Final = Shared()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One image on one node."""

    want: str
    node: str
    tier: Tier
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything belongs."""

    places: Mapping[tuple[str, str], Place] = field(default_factory=dict)
    """By want and node."""
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Nodes of each pool, ready or not."""
    pools_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Pools of each node."""
    misfits: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """Want and pool, for architectures of the pool's nodes that the image was not built for."""


def lay_out(desired: Desired, machines: Iterable[Machine]) -> Layout:
    """Say what belongs on which node: selectors, taints and architecture of each pool decide."""
    known = {machine.name: machine for machine in machines}
    pools = {
        name: tuple(
            one.name
            for one in known.values()
            if belongs(one, pool, desired.resources.get(name, ()), shared=desired.shared)
        )
        for name, pool in desired.pools.items()
    }
    uses: dict[tuple[str, str], list[Use]] = {}
    misfits: dict[tuple[str, str], set[str]] = {}
    for use in desired.uses:
        want = desired.wants[use.want]
        for node in pools[use.pool]:
            if fits(want, known[node]):
                uses.setdefault((use.want, node), []).append(use)
            else:
                misfits.setdefault((use.want, use.pool), set()).add(known[node].architecture)
    pools_of: dict[str, set[str]] = {}
    for name, nodes in pools.items():
        for node in nodes:
            pools_of.setdefault(node, set()).add(name)
    return Layout(
        places={
            key: Place(want=key[0], node=key[1], tier=min(one.tier for one in why), uses=tuple(why))
            for key, why in uses.items()
        },
        pools=pools,
        pools_of={node: frozenset(names) for node, names in pools_of.items()},
        misfits={key: frozenset(names) for key, names in misfits.items()},
    )


def belongs(
    machine: Machine, pool: Pool | None, resources: Iterable[str], *, shared: Shared = NOTHING_SHARED
) -> bool:
    """Say whether workspaces of a pool may come to a node, when it is ready.

    A pool of GPUs that selects nothing means the nodes that offer its GPUs, not all nodes.
    """
    node, asked = machine.node, tuple(resources)
    if node.labels.get(OS, "linux") != "linux":
        return False
    selector = pool.node_selector if pool else {}
    tolerations = (*shared.tolerations, *(pool.tolerations if pool else ()))
    kept_away = untolerated(node, tolerations, Resources(dict.fromkeys(asked, 1)))
    if not all(_passes(taint) for taint in kept_away):
        return False
    if not selects(node, {**shared.node_selector, **selector}):
        return False
    return bool(selector) or not asked or any(name in node.allocatable for name in asked)


def _passes(taint: Mapping[str, str]) -> bool:
    """Say whether Kubernetes itself sets a taint, for as long as something is wrong with a node."""
    return taint.get("key", "").startswith(_CONDITION)


def fits(want: Want, machine: Machine) -> bool:
    """Say whether an image was built for a node's processors; what is not known is taken for yes."""
    node = machine.node.labels.get(ARCHITECTURE, "")
    return not want.architectures or not node or node in want.architectures


def closed(machine: Machine) -> Hold | None:
    """Say why a node takes no pull now; None if it does."""
    node = machine.node
    if node.cordoned:
        return Hold.NODE_CORDONED
    if _DISK_PRESSURE in node.pressures:
        return Hold.DISK_PRESSURE
    # Pods with a request tolerate memory pressure by themselves.
    wrong = any(_passes(taint) and taint.get("key") != _MEMORY for taint in node.taints)
    return Hold.NODE_NOT_READY if wrong or node.ready is not True else None


def tolerations_for(desired: Desired, pools: Iterable[str]) -> list[dict[str, Any]]:
    """Give the tolerations of a pull pod: those of all workspaces, of its pools, and of admission.

    `ExtendedResourceToleration` acts only on pods that ask for the resource, and a pull asks for none.
    """
    found = list(desired.shared.tolerations)
    for name in pools:
        pool = desired.pools[name]
        found += pool.tolerations if pool else ()
        found += [Toleration(key=one, operator="Exists") for one in desired.resources[name]]
    different = {one.model_dump_json(): one for one in found}
    return [one.model_dump(by_alias=True, exclude_none=True) for one in different.values()]
