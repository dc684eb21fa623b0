"""Amounts as KubeSpawner writes them, which is not how Kubernetes does.

Source: JupyterHub's `ByteSpecification` (a number of bytes, or K, M, G, T as powers of 1024), KubeSpawner's
`cpu_limit` (a plain number).

Pure: no clock, no network.
"""

import math
from typing import Any, Final

from ..errors import QuantityError

_UNITS: Final = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
MEMORY_FORM: Final = "Write a number of bytes, or a number with K, M, G or T (powers of 1024), such as 16G."
CPU_FORM: Final = "Write a plain number, such as 2 or 0.5."


def spawner_memory(value: Any) -> int | None:
    """Read an amount of memory as bytes; None and zero are no bound.

    Raises
    ------
    QuantityError
        KubeSpawner would refuse it at the start of a server.
    """
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _finite(value, MEMORY_FORM) or None
    text = value if isinstance(value, str) else ""
    factor = _UNITS.get(text[-1:])
    try:
        number = float(text[:-1])
    except ValueError:
        number = math.nan
    if factor is None or math.isnan(number):
        raise QuantityError(f"KubeSpawner does not take {value!r} for memory", help=MEMORY_FORM)
    return _finite(number * factor, MEMORY_FORM) or None


def spawner_cpu(value: Any) -> float | None:
    """Read a number of processors; None and zero are no bound.

    Raises
    ------
    QuantityError
        KubeSpawner would refuse it at the start of a server.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError(f"KubeSpawner does not take {value!r} for processors", help=CPU_FORM)
    _finite(value, CPU_FORM)
    return float(value) or None


def millicores(cpus: float) -> int:
    """Give processors in millicores, rounded up as Kubernetes does."""
    return max(1, math.ceil(round(cpus * 1000, 6)))


def _finite(number: float, form: str) -> int:
    if not math.isfinite(number) or number < 0:
        raise QuantityError(f"{number!r} is not an amount", help=form)
    return int(number)
