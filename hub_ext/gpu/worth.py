"""What a part of a card is worth, in whole cards, exactly.

Pure: no clock, no network.
"""

from __future__ import annotations

from fractions import Fraction

from .mig import compute_slices
from .products import find_card


def slice_worth(product: str, slice_name: str) -> Fraction:
    """Give the larger of a MIG slice's part of the processors and its part of the memory.

    ``1g.18gb`` of an H200 is 1/7, ``1g.35gb`` with its two memory slices of eight is 1/4, the whole card 1.
    For a card that is not in the table the processors decide, out of seven.

    Raises
    ------
    NameRuleError
        Not a MIG profile.
    """
    card = find_card(product)
    layout = card.mig if card else None
    profile = layout.find(slice_name) if layout else None
    if layout is None or profile is None:
        return Fraction(min(compute_slices(slice_name), 7), 7)
    return max(Fraction(profile.compute, layout.compute_slices), Fraction(profile.size, layout.memory_slices))


def share_worth(replicas: int) -> Fraction:
    """Give the part of a card that one of `replicas` shares stands for."""
    return Fraction(1, replicas)
