"""MIG profiles: their names, and whether a set of them fits on one card.

A card is cut into memory slices (eight, or four on small cards) and compute slices. A profile occupies a run
of memory slices and may begin only at certain ones, so counting compute slices is not enough: two `3g` take
all eight memory slices, and no `1g` has room beside them although a compute slice is left.

Sources: `nvidia-smi mig -lgip` and `-lgipp` on an H200 (driver 580), NVIDIA MIG user guide ("Supported MIG
profiles"), mig-parted v0.15.0 (names per product).

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ..errors import NameRuleError

_PROFILE: Final = re.compile(
    r"(?P<compute>[1-9])g\.(?P<memory>[1-9][0-9]{0,3})gb(?P<attribute>\+me(?:\.all)?|\+gfx|-me)?"
)
_LOOSE: Final = re.compile(r"(?:(?P<compute>[0-9])g[.-]?)?(?P<memory>[0-9]{1,4})gb?(?P<rest>.*?)\s*$", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """One size of slice on one kind of card."""

    name: str
    """As the driver writes it: ``1g.18gb+me``."""
    compute: int
    """Compute slices."""
    size: int
    """Memory slices."""
    starts: tuple[int, ...]
    """Memory slices at which it may begin."""
    media: int = 0
    """Units of the card's media budget that it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigLayout:
    """What one kind of card can be cut into."""

    memory_slices: int
    compute_slices: int
    media: int
    """Units that the profiles of one cut may take together."""
    profiles: tuple[MigProfile, ...]

    def find(self, name: str) -> MigProfile | None:
        """Give the profile by its exact name."""
        return next((profile for profile in self.profiles if profile.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(profile.name for profile in self.profiles)


def is_mig_profile(name: str) -> bool:
    """Say whether a text is a MIG profile on any card."""
    return _PROFILE.fullmatch(name) is not None


def compute_slices(name: str) -> int:
    """Give the compute slices that a profile's name says.

    Raises
    ------
    NameRuleError
        Not a MIG profile.
    """
    match = _PROFILE.fullmatch(name)
    if match is None:
        raise NameRuleError(
            f"{name!r} is not a MIG profile",
            code="bad-mig-profile",
            help="Write compute and memory as the driver does, such as 1g.18gb or 1g.18gb+me.",
        )
    return int(match["compute"])


def max_count(layout: MigLayout, name: str) -> int:
    """Say how many slices of one size a card holds; zero for a size that it does not have."""
    count = 0
    while fits(layout, {name: count + 1}):
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Need:
    """What a set of slices takes of a card."""

    compute: int
    memory: int
    media: int


def need(layout: MigLayout, geometry: Mapping[str, int]) -> Need:
    """Add up what slices take; names that the card does not have count nothing."""
    wanted = [(profile, count) for name, count in geometry.items() if (profile := layout.find(name))]
    return Need(
        compute=sum(profile.compute * count for profile, count in wanted),
        memory=sum(profile.size * count for profile, count in wanted),
        media=sum(profile.media * count for profile, count in wanted),
    )


def fits(layout: MigLayout, geometry: Mapping[str, int]) -> bool:
    """Say whether all slices of `geometry` (profile name to number) have room on one card at once."""
    wanted: list[MigProfile] = []
    for name, count in geometry.items():
        profile = layout.find(name)
        if profile is None or count > layout.memory_slices:
            return False
        wanted.extend([profile] * count)
    total = need(layout, geometry)
    if total.compute > layout.compute_slices or total.media > layout.media:
        return False
    ordered = sorted(wanted, key=lambda profile: (-profile.size, len(profile.starts), profile.name))
    return _place(tuple((profile.size, profile.starts) for profile in ordered), 0)


@lru_cache(maxsize=4096)
def _place(wanted: tuple[tuple[int, tuple[int, ...]], ...], taken: int) -> bool:
    """Try every place for the first slice, then for the rest; `taken` is a bit per memory slice."""
    if not wanted:
        return True
    size, starts = wanted[0]
    for start in starts:
        mask = ((1 << size) - 1) << start
        if not taken & mask and _place(wanted[1:], taken | mask):
            return True
    return False


def nearest(layout: MigLayout, name: str) -> str:
    """Guess which profile of a card was meant by a name that it does not have; empty for no idea.

    Same number of compute slices first, then the closest memory, then the same attribute.
    """
    match = _LOOSE.search(name)
    if match is None:
        return ""
    compute = int(match["compute"]) if match["compute"] else None
    memory, rest = int(match["memory"]), match["rest"].lower().replace(".me", "+me", 1)

    def distance(candidate: str) -> tuple[bool, int, bool, int]:
        parts = _PROFILE.fullmatch(candidate)
        if parts is None:
            raise AssertionError(candidate)
        same_compute = compute is not None and int(parts["compute"]) == compute
        same_attribute = (parts["attribute"] or "") == rest
        return (not same_compute, abs(int(parts["memory"]) - memory), not same_attribute, len(candidate))

    return min(layout.names, key=distance)


def sizes(names: str, *, shape: Iterable[tuple[int, int, tuple[int, ...]]]) -> tuple[MigProfile, ...]:
    """Read a row of names, one per size of `shape` (compute, memory slices, starts)."""
    return tuple(
        MigProfile(name=name, compute=compute, size=size, starts=starts)
        for name, (compute, size, starts) in zip(names.split(), shape, strict=True)
    )
