"""What is wrong with a catalog, at a place inside it; `load` makes findings of it, with file and line.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass

from .codes import Code

Loc = tuple[str | int, ...]
"""Place of a value: keys and indexes from the top of the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong."""

    code: Code
    message: str
    loc: Loc = ()
    help: str = ""
    line: int | None = None
    """Line in the file, where it is known better than by the place."""
    file: str | None = None
    """File, where it is not one of the catalog's own; `loc` says nothing then."""


def path_of(loc: Loc) -> str:
    """Write a place as `yq` does: ``profiles[2].name``, ``pools.gpu.nodeSelector["a.b/c"]``."""
    path = ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.replace("-", "").replace("_", "").isalnum() and step.isascii():
            path += f".{step}" if path else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            path += f'["{escaped}"]'
    return path
