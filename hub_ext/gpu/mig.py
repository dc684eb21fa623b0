"""MIG profiles: which exist on which card, and whether a set of them fits on one.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from ..errors import NameRuleError

_PROFILE: Final = re.compile(
    r"(?P<compute>[1-9])g\.(?P<memory>[1-9][0-9]{0,3})gb(?P<attributes>(?:[+-][a-z]+(?:\.all)?)*)"
)


def card_fraction(slice_name: str) -> Fraction:
    """Give the part of a card's processors that a MIG profile takes: ``2g.35gb`` is 2/7.

    Raises
    ------
    NameRuleError
        Not a MIG profile.
    """
    match = _PROFILE.fullmatch(slice_name)
    if match is None:
        raise NameRuleError(
            f"{slice_name!r} is not a MIG profile", code="bad-mig-profile", help="Write 1g.18gb."
        )
    return Fraction(int(match["compute"]), 7)
