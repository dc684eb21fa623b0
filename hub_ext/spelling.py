"""What was meant by a word that nobody knows here: one that is spelt alike.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

ALIKE: Final = 0.6
"""How much of two words has to agree, as `difflib` counts it; what guesses among many words asks for more."""


def meant(word: str, known: Iterable[str], *, alike: float = ALIKE) -> str | None:
    """Give the word that was meant: one of other capitals, dashes or underscores, or else the most alike."""
    words = list(known)
    plain = _plain(word)
    same = (one for one in words if _plain(one) == plain)
    return next(same, None) or next(iter(get_close_matches(word, words, n=1, cutoff=alike)), None)


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", *, alike: float = ALIKE) -> str:
    """Ask whether a word was meant, as a remedy; `otherwise` where none is like it."""
    found = meant(word, known, alike=alike)
    return f"Did you mean {found}?" if found else otherwise


def known_here(keys: Iterable[str]) -> str:
    """List the keys of a place, as a remedy; empty where there are none."""
    return f"Known here: {', '.join(sorted(keys))}." if keys else ""


def _plain(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()
