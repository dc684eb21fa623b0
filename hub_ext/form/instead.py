"""What would fit instead of a workspace that a limit refuses, in the words that users read.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ..cluster.capacity import Supply
from ..quota.arithmetic import GPU_EQUIVALENTS, MEMORY, Resources
from ..quota.policy import with_fits
from .entry import Entry

_HOPELESS: Final = frozenset({Supply.NO_NODE, Supply.NO_SCALE_UP, Supply.NOT_OFFERED})
"""What may be started and would find no node is no help."""


def what_fits(entries: Iterable[Entry], *, profile: str, asked: Resources) -> tuple[str, ...]:
    """Name what may be started now instead of a profile, as it is filled in: the largest first.

    Nothing that is worth more GPUs than what was asked: who picks a notebook does not want a card.
    """
    found = [
        (_size(entry.room.offer.asked), entry.workspace.profile.display_name)
        for entry in entries
        if entry.workspace.profile.name != profile
        and entry.room.offer is not None
        and entry.room.offer.allowed
        and entry.room.offer.availability.supply not in _HOPELESS
    ]
    most = _size(asked)[0]
    ordered = sorted((one for one in found if one[0][0] <= most), key=lambda one: one[0], reverse=True)
    return tuple(dict.fromkeys(title for _, title in ordered))


def with_alternatives(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Name in each refusal by a limit what would fit instead."""
    known = tuple(entries)
    return tuple(_with_alternatives(entry, known) for entry in known)


def _with_alternatives(entry: Entry, entries: tuple[Entry, ...]) -> Entry:
    room, offer = entry.room, entry.room.offer
    if offer is None or offer.refusal is None or not room.refusal:
        return entry
    fits = what_fits(entries, profile=entry.workspace.profile.name, asked=offer.asked)
    refusal = with_fits(offer.refusal, fits)
    return replace(entry, room=replace(room, refusal=refusal.text, offer=replace(offer, refusal=refusal)))


def _size(asked: Resources) -> tuple[float, float]:
    return float(asked[GPU_EQUIVALENTS]), float(asked[MEMORY])
