"""How much a user keeps in the store, and whether more of it fits.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hub_ext.units import gib

from .settings import Bounds
from .verdicts import RefusalReason, RunRefusedError

LOG_SLACK: Final = 1.1
"""By how much a log may go beyond the bound: it says why the rest was not kept."""


@dataclass(slots=True)
class Shelf:
    """The files of one user, each with its size in bytes, and their sum."""

    sizes: dict[str, int] = field(default_factory=dict)
    total: int = 0

    def put(self, path: str, size: int) -> None:
        """Count a file; one that was there is replaced."""
        self.total += size - self.sizes.get(path, 0)
        self.sizes[path] = size

    def drop(self, path: str) -> None:
        """Count a file no more."""
        self.total -= self.sizes.pop(path, 0)

    def as_dict(self, bounds: Bounds) -> dict[str, Any]:
        """Give what is kept, and how much may be."""
        return {
            "files": len(self.sizes),
            "size": self.total,
            "mostFiles": bounds.kept_files,
            "mostSize": bounds.kept_size,
        }


def check_room(shelf: Shelf, new: Mapping[str, int], bounds: Bounds, *, slack: float = 1.0) -> None:
    """Refuse files that do not fit beside what is kept; with none, whoever has no room left for any.

    Raises
    ------
    RunRefusedError
        `too-much-kept`.
    """
    files = len(shelf.sizes) + sum(1 for path in new if path not in shelf.sizes)
    size = shelf.total + sum(amount - shelf.sizes.get(path, 0) for path, amount in new.items())
    if not new:
        files, size = files + 1, size + 1
    too_many = files > bounds.kept_files * slack
    if not too_many and size <= bounds.kept_size * slack:
        return
    have = (
        f"{len(shelf.sizes)} files of runs, and {bounds.kept_files}"
        if too_many
        else f"{gib(shelf.total)} of runs, and {gib(bounds.kept_size)}"
    )
    raise RunRefusedError(
        RefusalReason.TOO_MUCH_KEPT,
        f"You keep {have} are allowed.",
        help="Remove runs that you do not need: on their pages, or by `gpu-workspaces handoff remove`.",
    )
