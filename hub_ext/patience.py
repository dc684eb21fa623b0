"""How long a start may take: a time of its own, and beyond it one that it may spend in queues.

The time of its own runs while something is done for the start: a volume is attached, an image is pulled. The
other one runs while it only waits for its turn or for a node that is being added.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

MARGIN: Final = 30.0
"""Seconds that the hub waits beyond both: it ends a start without a reason, so it must not be the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What is left, in seconds."""

    own: float
    queue: float

    @property
    def whole(self) -> float:
        """What the hub has to wait at most."""
        return self.own + self.queue + MARGIN

    def left(self, *, queued: bool) -> float:
        """Say how long the present wait may last."""
        return self.queue if queued else self.own

    def after(self, seconds: float, *, queued: bool) -> Patience:
        """Take off what a wait of that kind has used; nothing goes below zero."""
        if queued:
            return replace(self, queue=max(0.0, self.queue - seconds))
        return replace(self, own=max(0.0, self.own - seconds))
