"""What would fit instead of a workspace that a limit refuses, in the words that users read.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..catalog.compose import Workspace
from ..cluster.capacity import Supply
from ..quota.arithmetic import GPU_EQUIVALENTS, MEMORY, Resources
from ..quota.policy import with_fits
from .entries import Entry
from .room import Room

_HOPELESS = frozenset({Supply.NO_NODE, Supply.NO_SCALE_UP, Supply.NOT_OFFERED})
"""Supplies of which nothing would come: to be allowed to start is not enough."""


def what_fits(entries: Iterable[Entry], *, but: Workspace) -> tuple[str, ...]:
    """Name what may be started now as it is filled in, the largest first: the nearest to what was asked."""
    found = [
        (entry.room.offer.asked, entry.workspace.profile.display_name)
        for entry in entries
        if entry.workspace.profile.name != but.profile.name and _starts(entry.room)
        if entry.room.offer is not None
    ]
    return tuple(dict.fromkeys(title for _, title in sorted(found, key=_size, reverse=True)))


def with_alternatives(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Name in each refusal by a limit what would fit instead."""
    known = tuple(entries)
    return tuple(_with_alternatives(entry, known) for entry in known)


def _with_alternatives(entry: Entry, entries: tuple[Entry, ...]) -> Entry:
    room, offer = entry.room, entry.room.offer
    if offer is None or offer.refusal is None or not room.refusal:
        return entry
    refusal = with_fits(offer.refusal, what_fits(entries, but=entry.workspace))
    offer = replace(offer, refusal=refusal)
    return replace(entry, room=replace(room, refusal=refusal.text, offer=offer))


def _starts(room: Room) -> bool:
    return bool(
        room.offer and room.offer.allowed and not room.refusal and room.offer.availability.supply not in _HOPELESS
    )


def _size(found: tuple[Resources, str]) -> tuple[float, float]:
    asked, _ = found
    return float(asked[GPU_EQUIVALENTS]), float(asked[MEMORY])
