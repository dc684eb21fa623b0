"""What would fit instead of a workspace that a limit refuses, in the words that users read.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ..cluster.capacity import Supply
from ..cluster.offer import charged
from ..quota.arithmetic import GPU_EQUIVALENTS, MEMORY, Resources
from ..quota.policy import with_fits
from ..quota.verdicts import Shortage
from .entry import Entry

_HOPELESS: Final = frozenset({Supply.NO_NODE, Supply.NO_SCALE_UP, Supply.NOT_OFFERED})
"""What may be started and would find no node is no help."""


def what_fits(
    entries: Iterable[Entry], *, profile: str, asked: Resources, short: Sequence[Shortage] = ()
) -> tuple[str, ...]:
    """Name what may be started now instead of a profile, as it is filled in: the largest first.

    Nothing that is worth more GPUs than what was asked: who picks a notebook does not want a card.

    Parameters
    ----------
    short
        What a quota of the namespace leaves; the hub may not see that quota itself.
    """
    return _named((entry for entry in _ranked(entries) if _goes_into(entry, short)), profile, asked)


def _goes_into(entry: Entry, short: Sequence[Shortage]) -> bool:
    if not short or entry.room.offer is None:
        return not short
    needed = charged(entry.workspace, entry.room.offer.asked)
    unlimited = {one.resource for one in short if one.resource.startswith("limits.")} - set(needed)
    return not unlimited and all(needed[one.resource] <= one.left for one in short)


def with_alternatives(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Name in each refusal by a limit what would fit instead."""
    known = tuple(entries)
    ranked = _ranked(known)
    return tuple(_with_alternatives(entry, ranked) for entry in known)


def _with_alternatives(entry: Entry, ranked: Sequence[Entry]) -> Entry:
    room, offer = entry.room, entry.room.offer
    if offer is None or offer.refusal is None or not room.refusal:
        return entry
    fits = _named(ranked, entry.workspace.profile.name, offer.asked)
    refusal = with_fits(offer.refusal, fits)
    return replace(entry, room=replace(room, refusal=refusal.text, offer=replace(offer, refusal=refusal)))


def _ranked(entries: Iterable[Entry]) -> list[Entry]:
    """Give those that may be started, the largest first."""
    found = [
        entry
        for entry in entries
        if entry.room.offer is not None
        and entry.room.offer.allowed
        and not entry.room.offer.warning
        and entry.room.offer.availability.supply not in _HOPELESS
    ]
    return sorted(found, key=_size_of, reverse=True)


def _named(ranked: Iterable[Entry], profile: str, asked: Resources) -> tuple[str, ...]:
    most = _size(asked)[0]
    found = (
        entry.workspace.profile
        for entry in ranked
        if entry.workspace.profile.name != profile and _size_of(entry)[0] <= most
    )
    return tuple(dict.fromkeys(one.display_name for one in found))


def _size_of(entry: Entry) -> tuple[float, float]:
    return _size(entry.room.offer.asked) if entry.room.offer else (0.0, 0.0)


def _size(asked: Resources) -> tuple[float, float]:
    return float(asked[GPU_EQUIVALENTS]), float(asked[MEMORY])
