"""What a hub remembers of a home between starts: which volume it is, and where that can be attached.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A claim that was bound to a volume."""

    namespace: str
    claim: str
    volume: str
    """Another one under the same claim was made anew, and may be elsewhere."""
    zones: tuple[str, ...] = ()
    """Zones that it can be attached in; empty for anywhere."""

    def is_at(self, namespace: str, claim: str) -> bool:
        """Say whether it is the home of that name."""
        return (self.namespace, self.claim) == (namespace, claim)

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as the hub's record keeps them."""
        return asdict(self)


def read_home(record: Any) -> Home | None:
    """Read a record of `as_dict`; what was kept by another version, or is none, is not known."""
    if not isinstance(record, Mapping):
        return None
    try:
        zones = tuple(str(zone) for zone in record["zones"])
        named = {key: str(record[key]) for key in ("namespace", "claim", "volume")}
    except (KeyError, TypeError):
        return None
    return Home(**named, zones=zones)
