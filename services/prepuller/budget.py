"""Which images a node's disk has room for, the most useful first.

Sizes are those that kubelets report; containerd counts an image compressed, so leave room for two to three
times as much. An image whose size nobody knows counts as nothing until one node has it.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .facts import Machine
from .picture import Pair, Picture
from .settings import Settings

STAYS: Final = 1.5
"""How much more an image is worth that is there already: two of equal use do not take turns."""


def budget_of(machine: Machine, settings: Settings) -> int | None:
    """Give the bytes that wanted images may take on a node; None for no bound."""
    bounds = []
    if settings.disk_bytes is not None:
        bounds.append(settings.disk_bytes)
    if settings.disk_share is not None and machine.disk_bytes:
        bounds.append(int(machine.disk_bytes * settings.disk_share))
    return min(bounds, default=None)


def over_budget(picture: Picture, settings: Settings, worth: Mapping[Pair, int]) -> frozenset[Pair]:
    """Give the places whose image finds no room beside those that are worth more."""
    budgets = {name: budget_of(machine, settings) for name, machine in picture.machines.items()}
    if all(budget is None for budget in budgets.values()):
        return frozenset()
    by_node: dict[str, list[Pair]] = {}
    for pair in picture.layout.places:
        if budgets[pair[1]] is not None:
            by_node.setdefault(pair[1], []).append(pair)
    over: set[Pair] = set()
    for node, pairs in by_node.items():
        left = budgets[node] or 0
        for pair in sorted(pairs, key=lambda pair: _rank(picture, pair, worth)):
            size = picture.sizes.get(pair[0], 0)
            if size > left:
                over.add(pair)
            else:
                left -= size
    return frozenset(over)


def _rank(picture: Picture, pair: Pair, worth: Mapping[Pair, int]) -> tuple[int, float]:
    there = picture.sights[pair].pinned
    return picture.layout.places[pair].tier, -worth[pair] * (STAYS if there else 1) - there
