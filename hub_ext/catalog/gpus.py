"""What a GPU request of the catalog is on the cluster: resource name, number, worth, meaning.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..gpu.resources import mig_resource, shared_resource
from ..gpu.sharing import Semantics, Sharing, semantics
from ..gpu.worth import share_worth, slice_worth
from .pools import ExclusiveGpu, Gpu, MigGpu
from .resources import GpuRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuGrant:
    """What a workspace asks the cluster for."""

    resource: str
    """Extended resource, such as ``nvidia.com/mig-1g.18gb``."""
    count: int
    sharing: Sharing
    product: str
    """Empty where the pool names no card."""
    slice_name: str
    """MIG profile, else empty."""
    meaning: Semantics


def slice_of(gpu: Gpu, request: GpuRequest) -> str:
    """Give the MIG profile that a request means: the one it names, or the pool's only one; else empty."""
    if not isinstance(gpu, MigGpu):
        return ""
    return request.slice or (next(iter(gpu.geometry)) if len(gpu.geometry) == 1 else "")


def resource_of(gpu: Gpu, slice_name: str = "") -> str:
    """Name the resource that a pool offers; `slice_name` matters for MIG only."""
    match gpu:
        case ExclusiveGpu():
            return gpu.resource_name
        case MigGpu():
            return mig_resource(slice_name, gpu.strategy)
        case _:
            return shared_resource(renamed=gpu.rename_by_default, resource_name=gpu.resource_name)


def resources_of(gpu: Gpu) -> tuple[str, ...]:
    """Name every resource that a pool offers, each once; none where GPUs are had by claims."""
    if gpu.via == "dra":
        return ()
    names = (
        [resource_of(gpu, name) for name in gpu.geometry] if isinstance(gpu, MigGpu) else [resource_of(gpu)]
    )
    return tuple(dict.fromkeys(names))


def grant(gpu: Gpu, request: GpuRequest) -> GpuGrant:
    """Say what a request asks for in the pool whose GPU is `gpu`."""
    slice_name = slice_of(gpu, request)
    replicas = 1 if isinstance(gpu, ExclusiveGpu | MigGpu) else gpu.replicas
    return GpuGrant(
        resource=resource_of(gpu, slice_name),
        count=request.count,
        sharing=gpu.sharing,
        product=gpu.product or "",
        slice_name=slice_name,
        meaning=semantics(gpu.sharing, count=request.count, slice_name=slice_name, replicas=replicas),
    )


def equivalents(gpu: Gpu, slice_name: str, count: int) -> Fraction:
    """Give the worth in whole cards: the pool's weight for a card, and of that its fraction for a part."""
    weight = Fraction(gpu.weight)
    match gpu:
        case ExclusiveGpu():
            return weight * count
        case MigGpu():
            return weight * count * slice_worth(gpu.product, slice_name)
        case _:
            return weight * count * share_worth(gpu.replicas)
