"""Names under which GPUs are asked for, and what they are worth.

Source: NVIDIA device plugin v0.18 to v0.20. A MIG name is ``mig-`` and the profile with every ``+`` turned
into a dot (internal/rm/rm.go); `renameByDefault` adds ``.shared``.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final

from .sharing import Strategy

NVIDIA_GPU: Final = "nvidia.com/gpu"
MIG_PREFIX: Final = "nvidia.com/mig-"
SHARED_SUFFIX: Final = ".shared"
PREFIXES: Final = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/")
"""Vendors whose resources are accelerators; one pod asks for one kind only."""


def is_accelerator(resource: str) -> bool:
    """Say whether a resource name stands for GPUs or the like."""
    return resource.startswith(PREFIXES)


def mig_resource(slice_name: str, strategy: Strategy = Strategy.MIXED) -> str:
    """Name the resource of a MIG profile: ``1g.18gb+me`` is ``nvidia.com/mig-1g.18gb.me`` under `mixed`."""
    if strategy is Strategy.SINGLE:
        return NVIDIA_GPU
    return MIG_PREFIX + slice_name.replace("+", ".")


def dotted(resource: str) -> str:
    """Give the name that is offered where somebody wrote a MIG profile as the driver does, with a plus."""
    return resource.replace("+", ".") if resource.startswith(MIG_PREFIX) else resource


PLUS_HELP: Final = "Write {name}: resource names have a dot where the MIG profile has a plus."
"""Remedy for a name that `dotted` changes."""


def shared_resource(*, renamed: bool, resource_name: str | None = None) -> str:
    """Name the resource of a share: a name given in the plugin's configuration wins."""
    return resource_name or NVIDIA_GPU + (SHARED_SUFFIX if renamed else "")


KARPENTER: Final = frozenset({NVIDIA_GPU, "amd.com/gpu", "habana.ai/gaudi"})
"""GPUs that Karpenter's providers know of a machine before it is there. Slices and renamed shares appear when
the device plugin runs, so no node is ever added for them."""


def is_nvidia(resource: str) -> bool:
    """Say whether a resource name stands for NVIDIA's GPUs, which need CUDA in the image."""
    return resource.startswith("nvidia.com/")
