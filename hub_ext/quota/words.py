"""Resources in the words of people: amounts with their units, names, and what there is too little of.

The one place that turns a name such as ``requests.nvidia.com/mig-1g.18gb`` into words. A resource that is not
known keeps its own name.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from ..gpu.resources import MIG_PREFIX, NVIDIA_GPU, SHARED_SUFFIX
from ..units import gib
from .arithmetic import GPU_EQUIVALENTS, MEMORY, SERVERS, Amount, is_cpu

_HUGE_PAGES: Final = "hugepages-"
_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
"""Between the name of a storage class and a key, in quotas for that class."""

_ONE: Final[dict[bool, tuple[int, ...]]] = {False: (1,), True: (1000,)}
_MASSES: Final = {
    MEMORY: "memory",
    "ephemeral-storage": "disk space",
    "storage": "storage",
}
"""What is measured in bytes, and not counted."""

_COUNTED: Final = {
    GPU_EQUIVALENTS: "GPU equivalent",
    SERVERS: "running workspace",
    "pods": "pod",
    "persistentvolumeclaims": "volume",
    NVIDIA_GPU: "GPU",
    NVIDIA_GPU + SHARED_SUFFIX: "GPU share",
    "amd.com/gpu": "AMD GPU",
    "gpu.intel.com/i915": "Intel GPU",
    "gpu.intel.com/xe": "Intel GPU",
    "habana.ai/gaudi": "Gaudi accelerator",
}


def number(amount: Amount) -> str:
    """Write a number of pieces: whole, or with at most two digits behind the point."""
    return f"{float(amount):.2f}".rstrip("0").rstrip(".")


def amount(resource: str, value: Amount) -> str:
    """Write an amount with its unit: ``2 GPUs``, ``64 GiB of memory``, ``0.29 GPU equivalents``."""
    if mass := _mass(_plain(resource)):
        return f"{figure(resource, value)} of {mass}"
    return f"{figure(resource, value)} {named(resource, one=value in _ONE[is_cpu(resource)])}"


def figure(resource: str, value: Amount) -> str:
    """Write an amount without what it is of: ``2``, ``64 GiB``."""
    if is_cpu(resource):
        return number(Fraction(value) / 1000)
    return gib(int(value)) if _mass(_plain(resource)) and value else number(value)


def named(resource: str, *, one: bool = False) -> str:
    """Name a resource: ``GPUs``, ``1g.18gb GPU slices``, ``memory``, ``disk space``."""
    plain = _plain(resource)
    if mass := _mass(plain):
        return mass
    noun = _noun(plain)
    return (noun if one else f"{noun}s") if noun else plain


def too_little(resources: Iterable[str]) -> str:
    """Say of what there is not enough: ``too few GPUs and too little memory``; empty for nothing."""
    found = (f"{'too little' if _mass(_plain(one)) else 'too few'} {named(one)}" for one in resources)
    return listed(tuple(dict.fromkeys(found)))


def unstated(keys: Iterable[str]) -> str:
    """Say what a workspace leaves open, by keys of quotas: ``no limit of memory``."""
    found = (f"no {'limit' if key.startswith('limits.') else 'request'} of {named(key)}" for key in keys)
    return listed(tuple(dict.fromkeys(found)))


def listed(words: Sequence[str], joint: str = "and") -> str:
    """Join words as people do: ``a``, ``a and b``, ``a, b and c``; nothing stays nothing."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def _plain(resource: str) -> str:
    """Take away what only quota keys carry: ``requests.nvidia.com/gpu`` is ``nvidia.com/gpu``."""
    key = resource.rpartition(_STORAGE_CLASS)[2]
    return key.removeprefix("requests.").removeprefix("limits.").removeprefix("count/")


def _mass(plain: str) -> str:
    return "huge pages" if plain.startswith(_HUGE_PAGES) else _MASSES.get(plain, "")


def _noun(plain: str) -> str:
    """Give the singular of what is counted; empty for what is not known."""
    if is_cpu(plain):
        return "CPU core"
    if plain.startswith(MIG_PREFIX):
        return f"{plain.removeprefix(MIG_PREFIX)} GPU slice"
    return _COUNTED.get(plain, "")
