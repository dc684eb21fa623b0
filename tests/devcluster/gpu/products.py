"""The GPU products that nodes of a development cluster can carry, down to the numbers their driver reports.

Pure: no clock, no I/O.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

MEMORY_SLICES = 8
"""Memory slices of a card that can be cut by MIG; compute slices are one fewer."""


class Shape(NamedTuple):
    """How a MIG profile is cut, the same on every product of Ampere and Hopper."""

    gi_profile: int
    """`NVML_GPU_INSTANCE_PROFILE_*`."""
    profile_id: int
    """What `nvidia-smi mig -lgip` prints as ID."""
    slices: int
    memory_slices: int
    starts: tuple[int, ...]
    """Memory slices at which it may begin: `nvidia-smi mig -lgipp`."""
    first_gi: int
    """GPU instance ids of this shape begin here."""
    instances: int
    """The most of it that one card can have."""
    suffix: str = ""


_ANYWHERE = tuple(range(7))
SHAPES = (
    Shape(0, 19, 1, 1, _ANYWHERE, first_gi=7, instances=7),
    Shape(7, 20, 1, 1, _ANYWHERE, first_gi=7, instances=1, suffix="+me"),
    Shape(9, 15, 1, 2, (0, 2, 4, 6), first_gi=3, instances=4),
    Shape(1, 14, 2, 2, (0, 2, 4), first_gi=3, instances=3),
    Shape(2, 9, 3, 4, (0, 4), first_gi=1, instances=2),
    Shape(3, 5, 4, 4, (0,), first_gi=1, instances=1),
    Shape(4, 0, 7, 8, (0,), first_gi=0, instances=1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """What one MIG profile has of the card: multiprocessors, then engines; memory in MiB."""

    sms: int
    copy: int
    decoder: int
    jpeg: int
    ofa: int
    memory_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """One row of `nvidia-smi mig -lgip`."""

    name: str
    """As the driver writes it, with `+me` for media extensions."""
    shape: Shape
    engines: Engines


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A card as its driver describes it."""

    key: str
    """The short name node files use."""
    name: str
    memory_mib: int
    capability: tuple[int, int]
    pci_device: int
    """Device id in the upper, vendor id in the lower half, as in `nvmlPciInfo_t`."""
    profiles: tuple[MigProfile, ...] = ()
    """Empty where the product cannot be cut by MIG."""

    @property
    def label(self) -> str:
        """The value of `nvidia.com/gpu.product` on a node where cards are whole."""
        return self.name.replace(" ", "-")

    def profile(self, name: str) -> MigProfile | None:
        return next((profile for profile in self.profiles if profile.name == name), None)


def _engines(*rows: tuple[int, int, int, int, int, int]) -> tuple[Engines, ...]:
    """One row per entry of `SHAPES`: SMs, copy engines, decoders, JPEG engines, optical flow, MiB."""
    return tuple(
        Engines(sms=sms, copy=copy, decoder=decoder, jpeg=jpeg, ofa=ofa, memory_mib=memory_mib)
        for sms, copy, decoder, jpeg, ofa, memory_mib in rows
    )


def profile_name(shape: Shape, memory_mib: int) -> str:
    """Name a profile as the driver does: its eighths of the card's memory in whole GB, rounded half up."""
    gigabytes = math.floor(shape.memory_slices / MEMORY_SLICES * math.ceil(memory_mib / 1024) + 0.5)
    return f"{shape.slices}g.{gigabytes}gb{shape.suffix}"


def _product(
    key: str,
    name: str,
    *,
    memory_mib: int,
    capability: tuple[int, int],
    pci_device: int,
    engines: tuple[Engines, ...] = (),
) -> Product:
    profiles = tuple(
        MigProfile(name=profile_name(shape, memory_mib), shape=shape, engines=parts)
        for shape, parts in zip(SHAPES, engines, strict=bool(engines))
    )
    return Product(
        key=key,
        name=name,
        memory_mib=memory_mib,
        capability=capability,
        pci_device=pci_device,
        profiles=profiles,
    )


# H200: read from a card with driver 580.159.04 by `nvmlDeviceGetGpuInstanceProfileInfo`.
# H100 and A100: NVIDIA's MIG user guide, tables of GPU instance profiles.
PRODUCTS: dict[str, Product] = {
    product.key: product
    for product in (
        _product(
            "H200",
            "NVIDIA H200",
            memory_mib=143771,
            capability=(9, 0),
            pci_device=0x233510DE,
            engines=_engines(
                (16, 1, 1, 1, 0, 16384),
                (16, 1, 1, 1, 1, 16384),
                (26, 1, 1, 1, 0, 33280),
                (32, 2, 2, 2, 0, 33280),
                (60, 3, 3, 3, 0, 71424),
                (64, 4, 4, 4, 0, 71424),
                (132, 8, 7, 7, 1, 143360),
            ),
        ),
        _product(
            "H100-80GB",
            "NVIDIA H100 80GB HBM3",
            memory_mib=81559,
            capability=(9, 0),
            pci_device=0x233010DE,
            engines=_engines(
                (16, 1, 1, 1, 0, 9984),
                (16, 1, 1, 1, 1, 9984),
                (26, 1, 1, 1, 0, 20096),
                (32, 2, 2, 2, 0, 20096),
                (60, 3, 3, 3, 0, 40448),
                (64, 4, 4, 4, 0, 40448),
                (132, 8, 7, 7, 1, 81152),
            ),
        ),
        _product(
            "A100-80GB",
            "NVIDIA A100-SXM4-80GB",
            memory_mib=81920,
            capability=(8, 0),
            pci_device=0x20B210DE,
            engines=_engines(
                (14, 1, 0, 0, 0, 9728),
                (14, 1, 1, 1, 1, 9728),
                (14, 1, 1, 0, 0, 19968),
                (28, 2, 1, 0, 0, 19968),
                (42, 3, 2, 0, 0, 40192),
                (56, 4, 2, 0, 0, 40192),
                (98, 7, 5, 1, 1, 80640),
            ),
        ),
        _product(
            "A100-40GB",
            "NVIDIA A100-SXM4-40GB",
            memory_mib=40960,
            capability=(8, 0),
            pci_device=0x20B010DE,
            engines=_engines(
                (14, 1, 0, 0, 0, 4864),
                (14, 1, 1, 1, 1, 4864),
                (14, 1, 1, 0, 0, 9856),
                (28, 2, 1, 0, 0, 9856),
                (42, 3, 2, 0, 0, 19968),
                (56, 4, 2, 0, 0, 19968),
                (98, 7, 5, 1, 1, 40192),
            ),
        ),
        _product("L40S", "NVIDIA L40S", memory_mib=46068, capability=(8, 9), pci_device=0x26B910DE),
        _product("T4", "Tesla T4", memory_mib=15360, capability=(7, 5), pci_device=0x1EB810DE),
    )
}


def place(profiles: tuple[MigProfile, ...]) -> tuple[int, ...] | None:
    """Find where each of `profiles` can begin on one card, in their order; `None` if they do not fit."""
    return _place(profiles, taken=frozenset(), starts=())


def _place(
    profiles: tuple[MigProfile, ...], *, taken: frozenset[int], starts: tuple[int, ...]
) -> tuple[int, ...] | None:
    if not profiles:
        return starts
    shape = profiles[0].shape
    for start in shape.starts:
        slots = frozenset(range(start, start + shape.memory_slices))
        if not slots & taken:
            found = _place(profiles[1:], taken=taken | slots, starts=(*starts, start))
            if found is not None:
                return found
    return None
