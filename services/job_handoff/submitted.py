"""What came of a submission, as its answer tells it.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .queue import Forecast
from .record import Record
from .schedules import Coming


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What came of a submission."""

    record: Record
    created: bool
    """False for one that was there already, and for a dry run."""
    forecast: Forecast
    notices: tuple[str, ...] = ()
    coming: Coming | None = None
    """First run of a schedule."""
    released: bool = False
    """Whether the server was asked to stop."""

    @property
    def told(self) -> tuple[str, ...]:
        """What its user should know, the next start of a schedule first."""
        starts = (f"It starts on {self.coming.text}, and then again and again.",) if self.coming else ()
        return (*starts, *self.notices)

    def as_dict(self) -> dict[str, Any]:
        """Give the body of the answer."""
        return {
            "id": self.record.id,
            "created": self.created,
            "title": self.record.title,
            "kind": self.record.kind,
            "profile": self.record.profile,
            "image": self.record.image,
            "queue": self.record.queue,
            "forecast": self.forecast.as_dict(),
            "notices": list(self.told),
            "next": self.coming.at.isoformat() if self.coming else None,
            "released": self.released,
        }
