"""What a card says about room: how much is free, how many more may be started, and why not.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Final

from ..catalog.compose import Workspace, combinations, compose
from ..catalog.model import Catalog, Profile
from ..cluster.capacity import Supply
from ..cluster.offer import NODES_UNSEEN, NOT_LOADED, Offer, parts
from ..errors import SelectionError
from .view import Stock

MOST: Final = 64
"""Combinations of answers that are tried before a card is called full."""

Look = Callable[[Workspace, str], Offer]
"""Says what a user may start now, given the team that it is booked on; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The part of a card that changes from minute to minute."""

    refusal: str = ""
    reason: str = ""
    """Why it is refused, or why what is filled in would be, in the words of the refusals."""
    caution: str = ""
    offer: Offer | None = None
    """None where nothing is known, or nothing was asked because it is for others."""
    parts: tuple[str, ...] = ()
    stock: Stock = Stock.UNKNOWN


_STOCK: Final = {Supply.FREE: Stock.FREE, Supply.WILL_SCALE: Stock.FREE, Supply.UNKNOWN: Stock.UNKNOWN}


def room_for(
    catalog: Catalog,
    workspace: Workspace,
    *,
    teams: Iterable[str],
    team: str,
    look: Look,
    others: bool = True,
) -> Room:
    """Say what there is for a card as it is filled in.

    A card is refused as a whole only if no other answer and no other team of the user would help; with
    `others` left out that is not looked for.
    """
    offer = look(workspace, team)
    stock = Stock.NONE if offer.warning else _STOCK.get(offer.availability.supply, Stock.NONE)
    room = Room(offer=offer, parts=parts(offer), stock=stock)
    if offer.refusal is None:
        return room
    text, reason = offer.refusal.text, offer.refusal.reason.value
    if others and _another(catalog, workspace.profile, teams=teams, look=look):
        return replace(room, caution=text, reason=reason)
    return replace(room, refusal=text, reason=reason)


def _another(catalog: Catalog, profile: Profile, *, teams: Iterable[str], look: Look) -> bool:
    for picks, team in product(islice(combinations(profile), MOST), list(teams) or [""]):
        try:
            workspace = compose(catalog, profile, picks)
        except SelectionError:
            continue
        if look(workspace, team).allowed:
            return True
    return False


def unknown(look: Look | None, stocks: Iterable[Stock]) -> str:
    """Say what is not known of any card; empty if nothing."""
    if look is None:
        return NOT_LOADED
    return NODES_UNSEEN if any(stock is Stock.UNKNOWN for stock in stocks) else ""
