"""Which driver a CUDA version needs.

Source: NVIDIA CUDA compatibility guide. Within a major version any driver that serves its first release will
do (minor-version compatibility). `cuda-compat` packages can lift that on data-center cards, which the catalog
does not know, so a driver that looks too old is a warning.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final

_FLOORS: Final = {11: "450.80.02", 12: "525.60.13", 13: "580"}


def min_driver(cuda: str) -> str | None:
    """Give the oldest driver for a CUDA version, None for one that is not in the table."""
    return _FLOORS.get(int(cuda.partition(".")[0]))


def version_key(text: str) -> tuple[int, ...]:
    """Make dotted versions comparable; missing parts count as zero."""
    parts = [int(part) for part in text.split(".")]
    return (*parts, *([0] * (3 - len(parts))))


def is_older(have: str, need: str) -> bool:
    """Say whether version `have` is before version `need`; a bare major version stands for its newest."""
    if "." not in have:
        return int(have) < version_key(need)[0]
    return version_key(have) < version_key(need)
