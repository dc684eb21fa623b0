"""What the events of a pull say: how long it took, how large it was, whether it was needed at all.

Source: kubelet `images/image_manager.go`. Three forms are in use: ``in 49.18s``, ``in 890ms (1m21.28s
including waiting)``, and the latter with ``Image size: 225073269 bytes``.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from .events import Event

_DONE: Final = re.compile(
    r"Successfully pulled image .* in (?P<took>[0-9hmsµun.]+)"
    r"(?: \((?P<total>[0-9hmsµun.]+) including waiting\))?(?:\. Image size: (?P<size>[0-9]+) bytes)?"
)
_PRESENT: Final = "already present on machine"
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>h|ms|us|µs|ns|m|s)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """The fetching of one container's image."""

    container: str
    begun: datetime | None
    """None if it was not seen to begin: the image was there, or the event was dropped."""
    ended: datetime | None
    """None while it lasts, or if the event was dropped."""
    warm: bool | None
    """Whether the image was there already; None if no event tells."""
    took: timedelta | None = None
    """By the kubelet's own measure, without waiting for other pulls."""
    waited: timedelta | None = None
    """Behind other pulls of the node."""
    size_bytes: int | None = None


def read_span(text: str) -> timedelta | None:
    """Read a duration as Go writes it: ``1m21.28s``, ``890ms``; None for anything else."""
    parts = list(_PART.finditer(text))
    if not parts or "".join(part.group() for part in parts) != text:
        return None
    return timedelta(seconds=sum(float(part["number"]) * _UNITS[part["unit"]] for part in parts))


def read_pull(container: str, events: Sequence[Event]) -> Pull:
    """Read the events of one container, oldest first; of several tries the first begins and the last ends."""
    own = [one for one in events if one.container == container]
    begun = next((one for one in own if one.reason == "Pulling"), None)
    done = next((one for one in reversed(own) if one.reason == "Pulled"), None)
    present = done is not None and _PRESENT in done.message
    match = _DONE.search(done.message) if done and not present else None
    took = read_span(match["took"]) if match else None
    whole = read_span(match["total"]) if match and match["total"] else None
    # An earlier try may have failed: then the image was fetched, whatever the last event says.
    warm = None if done is None and begun is None else present and begun is None
    return Pull(
        container=container,
        begun=begun.first if begun else None,
        ended=done.last if done else None,
        warm=warm,
        took=took,
        waited=max(whole - took, timedelta(0)) if whole is not None and took is not None else None,
        size_bytes=int(match["size"]) if match and match["size"] else None,
    )
