"""What a workspace's own processes do on its GPUs, as far as NVML can be trusted to tell.

In a container NVML lists only the container's own processes as holders of a GPU (current drivers), but says
of all processes of the card how much they use it, others under numbers of another process-id namespace. Both
together tell a pod's part of a shared card. Older drivers list nothing, or foreign numbers: a self-test at
the start decides, and any contradiction later takes the trust away for that reading.

Pure: no clock, no driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hub_ext.protocol import Attribution, Gpu, SelfTest


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One reading of a GPU or slice."""

    uuid: str
    holders: Mapping[int, int | None] | None
    """Process id of each holder → its memory in bytes, where told; None where holders cannot be listed."""
    local: frozenset[int] = frozenset()
    """Those holders that were in this container's process table just then."""
    former: frozenset[int] = frozenset()
    """Holders at the last reading: what they used before they ended counts, too."""
    use: Mapping[int, float] | None = None
    """Process id → share of the card since the last reading, only those that used it; None where not told."""
    peak: float | None = None
    """Largest sample of the whole card since the last reading; None for slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """All GPUs at one time, as reports have them."""

    gpus: tuple[Gpu, ...] = ()
    memory_bytes: Mapping[int, int] = field(default_factory=dict)
    """By process id."""
    use: Mapping[int, float] = field(default_factory=dict)
    """By process id, the largest of all GPUs."""
    complete: bool = True
    """False where the driver contradicted the self-test or did not answer."""


def attribute(devices: Iterable[Device], attribution: Attribution) -> GpuReading:
    """Say what the container's own processes hold and use, and nothing where that cannot be relied on."""
    devices = tuple(devices)
    if attribution is not Attribution.TRUSTED:
        return GpuReading(gpus=tuple(Gpu(uuid=device.uuid) for device in devices))
    gpus, memory, use, complete = [], dict[int, int](), dict[int, float](), True
    for device in devices:
        gpus.append(_gpu(device))
        if not _consistent(device):
            complete = False
            continue
        for pid, size in (device.holders or {}).items():
            memory[pid] = memory.get(pid, 0) + (size or 0)
            if device.use is not None:
                use[pid] = max(use.get(pid, 0), device.use.get(pid, 0))
    return GpuReading(gpus=tuple(gpus), memory_bytes=memory, use=use, complete=complete)


def merge(earlier: GpuReading | None, later: GpuReading) -> GpuReading:
    """Two readings of one window: what is held now, and the most that was used in either.

    What one of them could not tell of a GPU is not told for the window.
    """
    if earlier is None:
        return later
    known = {gpu.uuid: gpu.use for gpu in earlier.gpus}
    gpus = tuple(gpu.model_copy(update={"use": _most(known.get(gpu.uuid), gpu.use)}) for gpu in later.gpus)
    pids = earlier.use.keys() | later.use.keys()
    return GpuReading(
        gpus=gpus,
        memory_bytes=later.memory_bytes,
        use={pid: max(earlier.use.get(pid, 0), later.use.get(pid, 0)) for pid in pids},
        complete=earlier.complete and later.complete,
    )


def judge_self_test(pid: int, devices: Iterable[Device], *, driver: str) -> SelfTest:
    """Whether the self-test's child, which certainly held a GPU, was listed under its own number."""
    listed = {holder for device in devices for holder in device.holders or ()}
    if pid in listed:
        return SelfTest(attribution=Attribution.TRUSTED, detail=f"driver {driver}")
    seen = f"other numbers: {sorted(listed)[:8]}" if listed else "no process at all"
    return SelfTest(
        attribution=Attribution.UNTRUSTED,
        detail=f"driver {driver} lists {seen}, while process {pid} of this container held a GPU",
    )


def _most(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else max(first, second)


def _consistent(device: Device) -> bool:
    return device.holders is None or set(device.holders) <= device.local


def _gpu(device: Device) -> Gpu:
    if device.holders is None or not _consistent(device):
        return Gpu(uuid=device.uuid)
    sizes = device.holders.values()
    return Gpu(
        uuid=device.uuid,
        use=_own_use(device, device.holders),
        memory_bytes=None if None in sizes else sum(size or 0 for size in sizes),
    )


def _own_use(device: Device, holders: Mapping[int, int | None]) -> float | None:
    """Use by the holders: the card's own peak where nobody else was on it, else what is told of them."""
    if device.use is None:
        return None
    ours = holders.keys() | device.former
    own = min(sum(share for pid, share in device.use.items() if pid in ours), 1.0)
    alone = bool(ours) and device.use.keys() <= ours
    return max(own, device.peak or 0) if alone else own
