"""One workspace as one user sees it: what the page, the JSON and refusals are made of.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog.compose import Workspace
from ..catalog.versions import lifetime_notice
from ..errors import SelectionReason
from . import facts
from .room import Room


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One workspace as one user sees it, with the answers that are filled in."""

    workspace: Workspace
    chosen: bool
    """It is what would be started without choosing anything."""
    teams: tuple[str, ...]
    """Teams that it can be booked on."""
    team: str | None
    """The one that is filled in."""
    room: Room

    @property
    def closed(self) -> bool:
        """Whether it is for others: shown, and never offered."""
        return self.room.reason == SelectionReason.NOT_ALLOWED

    @property
    def warning(self) -> str:
        """What the user should know before they build on it: an announced end, a home that is elsewhere."""
        found = (lifetime_notice(self.workspace.profile), self.room.offer.warning if self.room.offer else "")
        return " ".join(filter(None, found))

    @property
    def group(self) -> str:
        """The heading that it stands under."""
        return self.workspace.profile.category or facts.kind(self.workspace)
