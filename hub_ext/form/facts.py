"""What is told about one workspace: its size, its share of a GPU, its folders, its end.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ..catalog.compose import Workspace
from ..catalog.gpus import GpuGrant
from ..catalog.model import (
    CpuAmount,
    Gpu,
    MemoryAmount,
    MigGpu,
    MpsGpu,
    Price,
    Session,
    TimeSlicedGpu,
)
from ..gpu.mig import compute_slices
from ..gpu.products import find_card
from ..gpu.sharing import Sharing
from ..quota.words import listed
from ..render.pod import gpu_grant
from ..render.storage import UserFacts, fill_in
from ..units import format_money, gib
from .view import Bar, BarKind, Place

_MOST_PARTS = 16
"""Parts of a bar that can still be told apart."""

_USUAL_SLICES = 7
"""Compute slices of a card that is not in the table."""

_DASH = "\N{EN DASH}"


def specs(workspace: Workspace) -> tuple[str, ...]:
    """Give the short facts in the order GPU, CPU, memory."""
    grant = gpu_grant(workspace)
    gpu = (grant.meaning.title, _product(grant)) if grant is not None and grant.count else ()
    return tuple(fact for fact in (*gpu, cpu(workspace.cpu), memory(workspace.memory)) if fact)


def _product(grant: GpuGrant) -> str:
    """Name the card; its memory only where all of it is the user's own."""
    card = find_card(grant.product)
    if card is None:
        return grant.product.replace("-", " ")
    tell = grant.sharing is Sharing.EXCLUSIVE and not card.name.endswith("GB")
    return f"{card.name}, {card.memory_gb} GB" if tell else card.name


def cpu(amount: CpuAmount) -> str:
    """Say how many processors: `4 CPU`, `4-8 CPU` (with a dash), `4 CPU or more`."""
    return _range(_cores(amount.request), _cores(amount.limit) if amount.limit else "", "CPU")


def memory(amount: MemoryAmount) -> str:
    """Say how much memory, in the same three forms: `16 GiB memory`."""
    return _range(gib(amount.request), gib(amount.limit) if amount.limit else "", "memory")


def _range(low: str, high: str, what: str) -> str:
    if not high:
        return f"{low} {what} or more"
    if low == high:
        return f"{low} {what}"
    number, _, unit = low.partition(" ")
    low = number if unit and high.endswith(f" {unit}") else low
    return f"{low}{_DASH}{high} {what}"


def _cores(millis: int) -> str:
    return f"{millis / 1000:g}"


def price(amount: Price | None) -> str:
    """Say what an hour costs; empty where it is not known."""
    if amount is None:
        return ""
    return f"{format_money(amount.per_hour, amount.currency)} per hour" if amount.per_hour else "no charge"


def sharing(workspace: Workspace) -> str:
    """Say in plain words what the share of a GPU means; empty without GPU."""
    grant = gpu_grant(workspace)
    return grant.meaning.text if grant is not None and grant.count else ""


def kind(workspace: Workspace) -> str:
    """Name the group of a workspace that has no category of its own."""
    grant = gpu_grant(workspace)
    if grant is None or not grant.count:
        return "Without GPU"
    if grant.sharing.is_share:
        return "Shared GPU"
    return "GPU slice" if grant.slice_name else "Whole GPU"


def bar(workspace: Workspace) -> Bar | None:
    """Draw how much of a card one gets; None without GPU."""
    grant = gpu_grant(workspace)
    gpu = workspace.pool.gpu if workspace.pool else None
    if grant is None or gpu is None or not grant.count:
        return None
    if isinstance(gpu, TimeSlicedGpu):
        return Bar(kind=BarKind.TURNS, parts=1, filled=1)
    parts, filled = _parts(gpu, grant.count, grant.slice_name)
    if parts > _MOST_PARTS:
        filled = max(1, filled * _MOST_PARTS // parts)
        parts = _MOST_PARTS
    return Bar(kind=BarKind.OWN, parts=parts, filled=min(filled, parts))


def _parts(gpu: Gpu, count: int, slice_name: str) -> tuple[int, int]:
    if isinstance(gpu, MpsGpu):
        return gpu.replicas, count
    if isinstance(gpu, MigGpu):
        card = find_card(gpu.product)
        whole = card.mig.compute_slices if card and card.mig else _USUAL_SLICES
        return whole, compute_slices(slice_name) * count
    return count, count


def stays(workspace: Workspace, user: UserFacts, *, hub_home: bool) -> Iterator[Place]:
    """List what survives a stop.

    Parameters
    ----------
    hub_home
        The hub mounts a volume of its own in workspaces whose profile brings no home.
    """
    storage = workspace.storage
    if storage.home is not None:
        size = f", {gib(storage.home.size)}" if storage.home.size else ""
        yield Place(path=storage.home.mount_path, text=f"your home{size}, the same in all your workspaces")
    elif hub_home:
        yield Place(path="", text="your home folder")
    if storage.checkpoints is not None:
        path = fill_in(storage.checkpoints.uri, workspace, user)
        yield Place(path=path, text=f"checkpoints; programs read the address from {storage.checkpoints.env}")
    mounts = {"data sets": storage.datasets, "models": storage.models} | storage.mounts
    for name, mount in mounts.items():
        if mount is not None:
            rights = "to read" if mount.read_only else "to read and write"
            yield Place(path=mount.mount_path, text=f"{mount.display_name or name}, {rights}")


def goes(workspace: Workspace, *, hub_home: bool) -> Iterator[Place]:
    """List what a stop takes away."""
    storage = workspace.storage
    if storage.scratch is not None:
        yield Place(
            path=storage.scratch.mount_path, text=f"scratch space, up to {gib(storage.scratch.size_limit)}"
        )
    if storage.home is None and not hub_home:
        yield Place(path="", text="everything else: this workspace has no home folder that is kept")
    else:
        yield Place(path="", text="everything outside these folders, packages installed there included")


def session(limits: Session) -> Iterator[str]:
    """Say when a workspace is stopped without being asked."""
    if limits.idle_timeout is not None:
        yield f"after {span(limits.idle_timeout)} without activity"
    if limits.max_duration is not None:
        yield f"after {span(limits.max_duration)} in any case"
    if limits.warn_before and (limits.idle_timeout or limits.max_duration):
        yield f"you are warned {listed([span(before) for before in limits.warn_before])} before"


def span(duration: timedelta) -> str:
    """Write a duration for people: `90 min` is `1 h 30 min`."""
    seconds = int(duration.total_seconds())
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts) or "0 s"
