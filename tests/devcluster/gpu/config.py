"""The files that describe a node's cards to the imitated driver and to NVIDIA's programs.

Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from .products import Product
from .setup import GpuSetup, InstalledCard

MAX_GPU_INSTANCES = 15
"""GPU instance ids that the kernel driver keeps capabilities for, per card."""
MAX_COMPUTE_INSTANCES = 8


def driver_config(setup: GpuSetup, cards: Sequence[InstalledCard]) -> str:
    """Write the rows that `driver/nvml.c` reads; its head explains them."""
    major, minor = setup.cuda
    rows = [f"driver;{setup.driver};{major * 1000 + minor * 10}"]
    for card in cards:
        rows.append(_card_row(card))
        rows.extend(_profile_rows(card.product))
        rows.extend(
            f"instance;{instance.uuid};{instance.profile.shape.gi_profile};{instance.gi}"
            for instance in card.instances
        )
    return "\n".join(rows) + "\n"


def plugin_config(plugin: Mapping[str, Any]) -> str:
    """Write the configuration file of NVIDIA's device plugin, feature discovery and MPS control daemon."""
    return yaml.safe_dump({"version": "v1", **plugin}, sort_keys=False)


def mig_minors(cards: int) -> str:
    """Write `/proc/driver/nvidia-caps/mig-minors` as the kernel driver numbers it."""
    return "".join(f"{path} {minor}\n" for minor, path in enumerate(_capabilities(cards), start=1))


def _capabilities(cards: int) -> Iterator[str]:
    yield "config"
    yield "monitor"
    for card in range(cards):
        for gi in range(MAX_GPU_INSTANCES):
            yield f"gpu{card}/gi{gi}/access"
            for ci in range(MAX_COMPUTE_INSTANCES):
                yield f"gpu{card}/gi{gi}/ci{ci}/access"


def _card_row(card: InstalledCard) -> str:
    product = card.product
    major, minor = product.capability
    mig = -1 if not product.profiles else int(card.mig)
    return (
        f"card;{card.uuid};{product.name};{product.memory_mib};{major};{minor};"
        f"{product.pci_device:x};{card.pci_bus:x};{mig}"
    )


def _profile_rows(product: Product) -> Iterator[str]:
    for profile in product.profiles:
        shape, engines = profile.shape, profile.engines
        numbers = (
            shape.gi_profile,
            shape.profile_id,
            shape.slices,
            shape.instances,
            engines.sms,
            engines.copy,
            engines.decoder,
            0,  # no profile of these products has an encoder
            engines.jpeg,
            engines.ofa,
            engines.memory_mib,
        )
        yield ";".join(("profile", *map(str, numbers)))
