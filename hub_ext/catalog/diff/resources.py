"""Differences in processors, memory and GPUs.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...units import format_cpu, gib
from ..gpus import grant
from ..model import Catalog, CpuAmount, GpuRequest, MemoryAmount, Resources
from .changes import ChangeCode, Impact

Difference = tuple[Impact, ChangeCode, str]
"""Impact, code and message, before it is known whom it concerns."""


def compare_resources(
    old: Catalog, before: Resources, new: Catalog, after: Resources
) -> Iterator[Difference]:
    """Compare what one workspace gets."""
    yield from _amount(ChangeCode.CPU, "processors", before.cpu, after.cpu, format_cpu)
    yield from _amount(ChangeCode.MEMORY, "memory", before.memory, after.memory, gib)
    yield from _gpu(old, before.gpu, new, after.gpu)


def _amount(
    code: ChangeCode,
    what: str,
    before: CpuAmount | MemoryAmount,
    after: CpuAmount | MemoryAmount,
    show: Callable[[int], str],
) -> Iterator[Difference]:
    if after.request != before.request:
        impact = Impact.NOTICEABLE if after.request < before.request else Impact.MINOR
        yield impact, code, f"reserved {what}: {show(before.request)} → {show(after.request)}"
    if after.limit != before.limit:
        had, has = (show(limit) if limit is not None else "no limit" for limit in (before.limit, after.limit))
        lower = after.limit is not None and (before.limit is None or after.limit < before.limit)
        yield Impact.NOTICEABLE if lower else Impact.MINOR, code, f"{what} limit: {had} → {has}"


def _gpu(
    old: Catalog, before: GpuRequest | None, new: Catalog, after: GpuRequest | None
) -> Iterator[Difference]:
    had, has = _kind(old, before), _kind(new, after)
    if had != has:
        impact = Impact.BREAKING if before is not None else Impact.MINOR
        yield impact, ChangeCode.GPU_KIND, f"GPU: {had} → {has}"
    elif before is not None and after is not None and before.count != after.count:
        impact = Impact.NOTICEABLE if after.count < before.count else Impact.MINOR
        yield impact, ChangeCode.GPU_COUNT, f"number of GPUs: {before.count} → {after.count}"


def _kind(catalog: Catalog, request: GpuRequest | None) -> str:
    """Say what kind of GPU it is for the user: the card and how it is shared, not where it stands."""
    gpu = catalog.pools[request.pool].gpu if request else None
    if request is None or gpu is None:
        return "none"
    given = grant(gpu, request)
    part = f" {given.slice_name}" if given.slice_name else ""
    shares = f" of {getattr(gpu, 'replicas', 0)}" if given.sharing.is_share else ""
    return f"{given.product or 'any card'}, {given.sharing}{part}{shares}"
