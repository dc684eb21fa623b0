"""Names for the draft: as close to the old ones as the catalog allows, each once.

Pure: no clock, no network.
"""

import re
from collections.abc import Container
from typing import Final

from ..names import ImageReference

_RESERVED: Final = frozenset({"profile", "version", "team"})
"""Names of choices that mean something else in a user's options."""


def name_of(text: str, taken: Container[str]) -> str:
    """Give a profile or pool name: lower-case letters, digits and dashes."""
    return _unique(re.sub(r"[^a-z0-9]+", "-", text.lower()), taken, "-")


def key_of(text: str, taken: Container[str]) -> str:
    """Give a key of a choice, an option or an image: dots and underscores may stay."""
    key = _unique(re.sub(r"[^a-z0-9._-]+", "-", text.lower()), taken, "-")
    return f"{key}-choice" if key in _RESERVED else key


def image_key(reference: ImageReference, taken: Container[str]) -> str:
    """Name an image after the last part of its repository, and its tag."""
    last = reference.repository.rpartition("/")[2]
    version = reference.tag or reference.short_digest
    return key_of(f"{last}-{version}" if version else last, taken)


def _unique(text: str, taken: Container[str], dash: str) -> str:
    base = text.strip("-._")[:50].strip("-._") or "x"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}{dash}{number}"
    return name
