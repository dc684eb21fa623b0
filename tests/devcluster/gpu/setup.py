"""What a node file says about a node's GPUs, and the cards that come of it.

Pure: no clock, no I/O. In a node file:

```yaml
gpus:
  product: H200
  cards: [{}, {mig: [1g.18gb, 1g.18gb, 3g.71gb]}]   # or a number of whole cards
  plugin:                                            # NVIDIA's own configuration file, `version: v1`
    flags: {migStrategy: mixed}
    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
```
"""

from __future__ import annotations

import difflib
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .products import PRODUCTS, MigProfile, Product, place

MAX_CARDS = 16
DRIVER_VERSION = "580.159.04"
CUDA_VERSION = (13, 0)
_IDENTITIES = uuid.UUID("5d0f2c0e-6a0b-4f3e-9a52-6c8a6f2f9d11")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Card(_Strict):
    """One card of a node file."""

    mig: tuple[str, ...] | None = None
    """Profiles it is cut into; `None` leaves MIG mode off, an empty list turns it on and cuts nothing."""


class GpuSetup(_Strict):
    """The GPUs of one node and how NVIDIA's device plugin shares them.

    Raises
    ------
    pydantic.ValidationError
        An unknown product, a profile the product does not have, or profiles that do not fit on one card.
    """

    product: str
    cards: tuple[Card, ...] = Field(min_length=1, max_length=MAX_CARDS)
    plugin: dict[str, Any] = Field(default_factory=dict)
    """The device plugin's configuration file as NVIDIA documents it, less its `version`."""
    driver: str = DRIVER_VERSION
    cuda: tuple[int, int] = CUDA_VERSION
    """The newest CUDA that the driver supports."""

    @field_validator("cards", mode="before")
    @classmethod
    def _whole_cards(cls, value: object) -> object:
        return ({},) * value if isinstance(value, int) else value

    @field_validator("product")
    @classmethod
    def _known_product(cls, value: str) -> str:
        if value not in PRODUCTS:
            raise ValueError(f"no product {value!r}; there are {', '.join(PRODUCTS)}")
        return value

    @model_validator(mode="after")
    def _cuttable(self) -> Self:
        for index, card in enumerate(self.cards):
            _check_cut(PRODUCTS[self.product], card.mig, where=f"cards[{index}].mig")
        return self

    @property
    def hardware(self) -> Product:
        return PRODUCTS[self.product]

    @property
    def mps(self) -> bool:
        """Whether shares go through CUDA's Multi-Process Service."""
        return bool(self.plugin.get("sharing", {}).get("mps"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A MIG device: one GPU instance filled by one compute instance."""

    uuid: str
    profile: MigProfile
    gi: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledCard:
    """A card in its slot."""

    index: int
    uuid: str
    product: Product
    mig: bool
    instances: tuple[Instance, ...]

    @property
    def pci_bus(self) -> int:
        return 0x10 + self.index


def install(setup: GpuSetup, *, seed: str) -> tuple[InstalledCard, ...]:
    """Put the cards of `setup` into their slots.

    Parameters
    ----------
    seed
        Names the machine: the same seed gives the same UUIDs, as the same machine would.
    """
    return tuple(
        InstalledCard(
            index=index,
            uuid=f"GPU-{_identity(seed, index)}",
            product=setup.hardware,
            mig=card.mig is not None,
            instances=_instances(setup.hardware, card.mig or (), seed=f"{seed}/{index}"),
        )
        for index, card in enumerate(setup.cards)
    )


def _check_cut(product: Product, names: tuple[str, ...] | None, *, where: str) -> None:
    if names is None:
        return
    if not product.profiles:
        raise ValueError(f"{where}: {product.name} cannot be cut by MIG")
    known = [profile.name for profile in product.profiles]
    profiles = []
    for name in names:
        profile = product.profile(name)
        if profile is None:
            closest = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
            raise ValueError(f"{where}: {product.name} has no profile {name!r}; the closest is {closest!r}")
        profiles.append(profile)
    counts = Counter(profiles)
    if (
        any(count > profile.shape.instances for profile, count in counts.items())
        or place(tuple(profiles)) is None
    ):
        raise ValueError(f"{where}: {', '.join(names)} do not fit together on one {product.name}")


def _instances(product: Product, names: tuple[str, ...], *, seed: str) -> tuple[Instance, ...]:
    """Number the instances as the driver does: each shape from its own first id, taking the next free one."""
    instances: list[Instance] = []
    for name in names:
        profile = product.profile(name)
        assert profile is not None, "checked when the node file was read"
        gi = profile.shape.first_gi
        while any(instance.gi == gi for instance in instances):
            gi += 1
        instances.append(Instance(uuid=f"MIG-{_identity(seed, gi)}", profile=profile, gi=gi))
    return tuple(instances)


def _identity(seed: str, number: int) -> uuid.UUID:
    return uuid.uuid5(_IDENTITIES, f"{seed}/{number}")
