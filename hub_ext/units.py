"""Quantities, counts, durations and money: read strictly, written in one way.

Sources: Kubernetes resource quantities (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/)
and "Manage resources for containers" (extended resources take whole numbers only).

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from .errors import QuantityError

_FORMS: Final = "a number, or a number with one of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei"

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))"
    r"(?P<suffix>[eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?"
)
_SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}
_LARGEST: Final = 2**63 - 1
"""Kubernetes keeps quantities in 64 bits; anything larger is capped there and refused here."""

_DURATION: Final = re.compile(
    r"(?:(?P<days>[0-9]{1,6})d)?(?:(?P<hours>[0-9]{1,6})h)?"
    r"(?:(?P<minutes>[0-9]{1,6})m)?(?:(?P<seconds>[0-9]{1,8})s)?"
)


def parse_quantity(value: object) -> Fraction:
    """Read a Kubernetes quantity exactly.

    Raises
    ------
    QuantityError
        Not a quantity (``16GB``, ``one``, ``true``), or larger than 64 bits hold.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(
            f"{'nothing' if value is None else f'{value!r:.60}'} is not a quantity", help=f"Write {_FORMS}."
        )
    return _parse_quantity(repr(value) if isinstance(value, float) else str(value))


@lru_cache(maxsize=4096)
def _parse_quantity(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text[:60]!r} is not a quantity", help=_quantity_help(text[:60]))
    suffix = match["suffix"] or ""
    if suffix[:1] in {"e", "E"} and len(suffix) > 1 and suffix != "Ei":
        factor = Fraction(10) ** int(suffix[1:])
    else:
        factor = _SUFFIXES.get(suffix, Fraction(1))
    number = Fraction(match["number"]) * factor
    if abs(number) > _LARGEST:
        raise QuantityError(f"{text!r} is larger than Kubernetes can hold")
    return number


def _quantity_help(text: str) -> str:
    spelled = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe])(i?)b?", text, re.IGNORECASE)
    if spelled:
        number, letter, binary = spelled.groups()
        upper = letter.upper()
        if binary:
            return f"Write {number}{upper}i."
        decimal = "k" if upper == "K" else upper
        return f"Write {number}{upper}i (powers of 1024) or {number}{decimal} (powers of 1000)."
    joined = "".join(text.split())
    if joined != text and _QUANTITY.fullmatch(joined):
        return f"Leave no space: {joined}."
    return f"Write {_FORMS}."


def parse_cpu(value: object) -> int:
    """Read processors as millicores: ``2``, ``0.5`` and ``500m`` are 2000, 500 and 500.

    Raises
    ------
    QuantityError
        Zero, negative, or finer than one millicore, which Kubernetes does not allow.
    """
    millis = parse_quantity(value) * 1000
    if millis <= 0:
        raise QuantityError(f"{value!r} is not a number of processors above zero")
    if millis.denominator != 1:
        nearest = max(1, round(millis))
        raise QuantityError(f"{value!r} is finer than one millicore", help=f"Write {nearest}m.")
    return int(millis)


def parse_memory(value: object) -> int:
    """Read an amount of memory or storage as bytes.

    Raises
    ------
    QuantityError
        Zero, negative, or not whole bytes (``400m`` is 0.4 bytes: ``400M`` was meant).
    """
    amount = parse_quantity(value)
    if isinstance(value, str) and value.endswith("m"):
        raise QuantityError(
            f"{value!r} means thousandths of a byte", help=f"Write {value[:-1]}M or {value[:-1]}Mi."
        )
    if amount <= 0:
        raise QuantityError(f"{value!r} is not an amount above zero")
    if amount.denominator != 1:
        raise QuantityError(f"{value!r} is not a whole number of bytes", help=f"Write {round(amount)}.")
    return int(amount)


def parse_count(value: object) -> int:
    """Read how many devices: whole numbers only, in any spelling of a quantity (``1000m`` is 1).

    Raises
    ------
    QuantityError
        Not a whole number, or negative. Kubernetes gives out extended resources whole.
    """
    count = parse_quantity(value)
    if count < 0:
        raise QuantityError(f"{value!r} is negative")
    if count.denominator != 1:
        raise QuantityError(
            f"{value!r} is not a whole number of devices",
            help="GPUs are given out whole; for part of one use a pool with MIG slices or shares.",
        )
    return int(count)


def parse_duration(value: object) -> timedelta:
    """Read a time span such as ``90m``, ``1h30m``, ``12h`` or ``7d``.

    Raises
    ------
    QuantityError
        No unit, an unknown one, units out of order, or nothing at all.
    """
    text = value.strip() if isinstance(value, str) else ""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        hint = "Write days, hours, minutes and seconds in this order, such as 90m, 1h30m or 7d."
        if isinstance(value, int) and not isinstance(value, bool):
            hint = f"Say which unit: {value}s, {value}m or {value}h."
        raise QuantityError(f"{value!r} is not a duration", code="bad-duration", help=hint)
    return timedelta(**{unit: int(number) for unit, number in match.groupdict().items() if number})


def format_bytes(amount: int) -> str:
    """Write bytes as a quantity that reads back to the same number, in the largest whole unit."""
    for letter in ("E", "P", "T", "G", "M", "K"):
        unit = 1024 ** ("KMGTPE".index(letter) + 1)
        if amount and amount % unit == 0:
            return f"{amount // unit}{letter}i"
    for letter in ("E", "P", "T", "G", "M"):
        unit = 1000 ** ("kMGTPE".index(letter) + 1)
        if amount and amount % unit == 0:
            return f"{amount // unit}{letter}"
    return str(amount)


def format_cpu(millis: int) -> str:
    """Write millicores as Kubernetes does: whole processors plain, the rest with ``m``."""
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def format_duration(span: timedelta) -> str:
    """Write a span so that `parse_duration` reads it back; fractions of a second are dropped."""
    seconds = int(span.total_seconds())
    parts = []
    for letter, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number}{letter}")
    return "".join(parts) or "0s"


def format_money(amount: Decimal, currency: str) -> str:
    """Write an amount with two digits, or as many as it has: ``2.40 EUR``, ``0.005 EUR``."""
    plain = amount.normalize()
    exponent = plain.as_tuple().exponent
    digits = max(2, -exponent if isinstance(exponent, int) else 2)
    return f"{amount:.{digits}f} {currency}"


def gib(amount: int) -> str:
    """Write bytes for people: ``64 GiB``, ``1.5 GiB``, ``512 MiB``."""
    for unit, size in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if amount >= size:
            return f"{amount / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{amount} B"
