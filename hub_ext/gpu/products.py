"""Cards: their memory, the processors they sit beside, and what MIG can cut them into.

A card is recognized by the node label ``nvidia.com/gpu.product``, which is the driver's name with dashes.

Sources: mig-parted v0.15.0 ``config-default.yaml`` (names and numbers per product), NVIDIA MIG user guide
("Supported GPUs", "Supported MIG profiles"), placements checked on an H200 with driver 580 (``nvidia-smi mig
-lgipp``). The media budget of the RTX PRO 6000 follows from its table: four engines, one per compute slice.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .mig import MigLayout, MigProfile, sizes

_EIGHTHS: Final = (
    (1, 1, (0, 1, 2, 3, 4, 5, 6)),
    (1, 2, (0, 2, 4, 6)),
    (2, 2, (0, 2, 4)),
    (3, 4, (0, 4)),
    (4, 4, (0,)),
    (7, 8, (0,)),
)
"""Sizes of cards with seven compute and eight memory slices: compute, memory, places to start."""

_QUARTERS: Final = ((1, 1, (0, 1, 2, 3)), (2, 2, (0, 2)), (4, 4, (0,)))
"""Sizes of cards with four compute and four memory slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One kind of card."""

    name: str
    pattern: str
    """Regular expression for the product label without vendor and without the suffixes of sharing."""
    memory_gb: int
    mig: MigLayout | None = None
    """None: the card cannot be cut."""
    mig_unknown: bool = False
    """The card can be cut, but its sizes are not in the table."""
    architecture: str = "amd64"
    """Processor of the machine that carries it."""


def _with_media(profile: MigProfile) -> MigProfile:
    return MigProfile(
        name=f"{profile.name}+me", compute=profile.compute, size=profile.size, starts=profile.starts, media=1
    )


def _eighths(names: str, *, also: str = "", media: tuple[str, ...] = ()) -> MigLayout:
    """Lay out a data-center card; `also` are other names of the largest sizes in some drivers."""
    profiles = sizes(names, shape=_EIGHTHS)
    others = sizes(also, shape=_EIGHTHS[-len(also.split()) :]) if also else ()
    with_media = tuple(_with_media(p) for p in profiles if p.name in {profiles[0].name, *media})
    return MigLayout(
        memory_slices=8,
        compute_slices=7,
        media=1,
        profiles=(*profiles[:1], *with_media, *profiles[1:], *others),
    )


def _a30() -> MigLayout:
    profiles = sizes("1g.6gb 2g.12gb 4g.24gb", shape=_QUARTERS)
    with_media = tuple(_with_media(profile) for profile in profiles[:2])
    return MigLayout(memory_slices=4, compute_slices=4, media=1, profiles=(*profiles, *with_media))


def _rtx_pro_6000() -> MigLayout:
    """Lay out a workstation card: every slice has media engines unless its name says ``-me``."""
    profiles: list[MigProfile] = []
    for plain in sizes("1g.24gb 2g.48gb 4g.96gb", shape=_QUARTERS):
        whole = plain.compute == 4
        for suffix, media in (("", plain.compute), ("+gfx", plain.compute), ("-me", 0), ("+me.all", 4)):
            if whole and suffix in {"-me", "+me.all"}:
                continue
            profiles.append(
                MigProfile(
                    name=plain.name + suffix,
                    compute=plain.compute,
                    size=plain.size,
                    starts=plain.starts,
                    media=media,
                )
            )
    return MigLayout(memory_slices=4, compute_slices=4, media=4, profiles=tuple(profiles))


_80GB: Final = _eighths("1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb")
_94GB: Final = _eighths("1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb", media=("1g.24gb",))
_96GB: Final = _eighths("1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb")

CARDS: Final = (
    Card(
        name="A100 40GB",
        pattern=r"A[18]00-.*40GB.*",
        memory_gb=40,
        mig=_eighths("1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
    ),
    Card(name="A100 80GB", pattern=r"A[18]00-.*80GB.*", memory_gb=80, mig=_80GB),
    Card(name="A30", pattern=r"A30", memory_gb=24, mig=_a30()),
    Card(name="H100 NVL", pattern=r"H[18]00-NVL", memory_gb=94, mig=_94GB),
    Card(name="H100 96GB", pattern=r"H[18]00-.*96GB.*", memory_gb=96, mig=_96GB),
    Card(name="H100 80GB", pattern=r"H[18]00(?:-PCIe|-SXM5?|(?:-.*)?80GB.*)?", memory_gb=80, mig=_80GB),
    Card(name="H20", pattern=r"H20", memory_gb=96, mig=_96GB),
    Card(
        name="H200",
        pattern=r"H200(?:-NVL|-SXM5?|-141GB.*)?",
        memory_gb=141,
        mig=_eighths("1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
    ),
    Card(
        name="GH200 144GB",
        pattern=r"GH200-144GB?.*",
        memory_gb=144,
        mig=_eighths("1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb"),
        architecture="arm64",
    ),
    Card(
        # The label carries the memory of the processor, 120 or 480 GB; the GPU has 96.
        name="GH200 96GB",
        pattern=r"GH200(?:-480GB|-120GB|-96GB.*)?",
        memory_gb=96,
        mig=_96GB,
        architecture="arm64",
    ),
    Card(
        name="B200",
        pattern=r"B200(?:-.*)?",
        memory_gb=180,
        mig=_eighths("1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
    ),
    Card(
        name="GB200",
        pattern=r"GB200(?:-.*)?",
        memory_gb=186,
        mig=_eighths("1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb", also="3g.95gb 4g.95gb 7g.189gb"),
        architecture="arm64",
    ),
    Card(
        name="B300",
        pattern=r"B300(?:-.*)?",
        memory_gb=269,
        mig=_eighths("1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb"),
    ),
    Card(
        name="GB300",
        pattern=r"GB300(?:-.*)?",
        memory_gb=278,
        mig=_eighths("1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb"),
        architecture="arm64",
    ),
    Card(
        name="RTX PRO 6000 Blackwell",
        pattern=r"RTX-PRO-6000-Blackwell.*",
        memory_gb=96,
        mig=_rtx_pro_6000(),
    ),
    Card(name="RTX PRO 5000 Blackwell", pattern=r"RTX-PRO-5000-Blackwell.*", memory_gb=48, mig_unknown=True),
    Card(name="RTX PRO 4500 Blackwell", pattern=r"RTX-PRO-4500-Blackwell.*", memory_gb=32, mig_unknown=True),
    Card(name="L40S", pattern=r"L40S", memory_gb=48),
    Card(name="L40", pattern=r"L40", memory_gb=48),
    Card(name="L4", pattern=r"L4", memory_gb=24),
    Card(name="A40", pattern=r"A40", memory_gb=48),
    Card(name="A16", pattern=r"A16", memory_gb=16),
    Card(name="A10", pattern=r"A10G?", memory_gb=24),
    Card(name="A2", pattern=r"A2", memory_gb=16),
    Card(name="T4", pattern=r"(?:Tesla-)?T4", memory_gb=16),
    Card(name="V100 32GB", pattern=r"(?:Tesla-)?V100S?-.*32GB.*", memory_gb=32),
    Card(name="V100 16GB", pattern=r"(?:Tesla-)?V100S?-.*16GB.*", memory_gb=16),
    Card(name="P100", pattern=r"(?:Tesla-)?P100-.*", memory_gb=16),
    Card(name="RTX 6000 Ada", pattern=r"RTX-6000-Ada-Generation", memory_gb=48),
    Card(name="RTX A6000", pattern=r"RTX-A6000", memory_gb=48),
)

_SUFFIX: Final = re.compile(r"(?P<product>.+?)(?P<suffix>(?:-MIG-.+?)?(?:-SHARED)?)")


def split_product(label: str) -> tuple[str, str]:
    """Part a product label from what feature discovery adds to it: ``-MIG-1g.5gb``, ``-SHARED``."""
    match = _SUFFIX.fullmatch(label)
    return (match["product"], match["suffix"]) if match else (label, "")


@lru_cache(maxsize=256)
def find_card(product: str) -> Card | None:
    """Recognize a card by its product label, with dashes or spaces; None for one not in the table."""
    plain, _ = split_product(product.strip().replace(" ", "-"))
    plain = plain.removeprefix("NVIDIA-")
    return next((card for card in CARDS if re.fullmatch(card.pattern, plain)), None)


@lru_cache(maxsize=256)
def is_misspelt(product: str) -> bool:
    """Say whether a product that `find_card` does not know differs from a card in capitals only."""
    plain = split_product(product.strip().replace(" ", "-"))[0].lower().removeprefix("nvidia-")
    return find_card(product) is None and any(re.fullmatch(card.pattern, plain, re.I) for card in CARDS)


def cards_with(profile: str) -> tuple[Card, ...]:
    """Name the cards that have a MIG profile."""
    return tuple(card for card in CARDS if card.mig is not None and card.mig.find(profile) is not None)
