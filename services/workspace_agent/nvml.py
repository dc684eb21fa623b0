"""The GPUs of the container as NVIDIA's management library shows them.

Foreign exceptions end here. Shell: talks to the driver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml  # type: ignore[import-untyped]

from .gpus import Device

_NOT_TOLD = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
)
"""Answers that mean a reading is not to be had: of slices and virtual GPUs, or from an older driver."""


class NvmlError(Exception):
    """The driver's library is not there or did not answer."""


class Nvml:
    """A session with the library. Raises `NvmlError`."""

    def __init__(self) -> None:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise NvmlError(str(error)) from error
        self._since: dict[str, int] = {}
        self._holders: dict[str, frozenset[int]] = {}

    def driver(self) -> str:
        """Version of the driver."""
        try:
            return str(pynvml.nvmlSystemGetDriverVersion())
        except pynvml.NVMLError as error:
            raise NvmlError(str(error)) from error

    def read(self) -> tuple[Device, ...]:
        """All GPUs and slices that can be seen; use is what was used since the last time."""
        try:
            return tuple(self._devices())
        except pynvml.NVMLError as error:
            raise NvmlError(str(error)) from error

    def _devices(self) -> Iterator[Device]:
        for index in range(pynvml.nvmlDeviceGetCount()):
            card = pynvml.nvmlDeviceGetHandleByIndex(index)
            slices = tuple(_slices(card))
            if slices:
                yield from (_slice(handle) for handle in slices)
            else:
                yield self._card(card)

    def _card(self, handle: Any) -> Device:
        uuid = str(pynvml.nvmlDeviceGetUUID(handle))
        begun = time.time_ns() // 1000
        since = self._since.get(uuid, begun)
        # Use before holders: what ended between the two then looks like somebody else's, not like rest.
        use, peak = _use(handle, since), _peak(handle, since)
        holders = _holders(handle)
        former, local = self._holders.get(uuid, frozenset()), _local(holders)
        self._since[uuid], self._holders[uuid] = begun, frozenset(holders or ()) & local
        return Device(uuid=uuid, holders=holders, local=local, former=former, use=use, peak=peak)


def _slices(card: Any) -> Iterator[Any]:
    """The MIG slices of a card that the container may use."""
    try:
        current, _ = pynvml.nvmlDeviceGetMigMode(card)
        count = pynvml.nvmlDeviceGetMaxMigDeviceCount(card) if current else 0
    except pynvml.NVMLError as error:
        if error.value not in _NOT_TOLD:
            raise
        return
    for index in range(count):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, index)
        except pynvml.NVMLError as error:
            if error.value not in {*_NOT_TOLD, pynvml.NVML_ERROR_NOT_FOUND}:
                raise


def _slice(handle: Any) -> Device:
    """NVML tells who holds a slice, and nothing of its use."""
    holders = _holders(handle)
    return Device(uuid=str(pynvml.nvmlDeviceGetUUID(handle)), holders=holders, local=_local(holders))


def _holders(handle: Any) -> dict[int, int | None] | None:
    found: dict[int, int | None] = {}
    for list_holders in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        try:
            found |= {holder.pid: holder.usedGpuMemory for holder in list_holders(handle)}
        except pynvml.NVMLError as error:
            if error.value not in _NOT_TOLD:
                raise
            if list_holders is pynvml.nvmlDeviceGetComputeRunningProcesses:
                return None
    return found


def _local(holders: dict[int, int | None] | None) -> frozenset[int]:
    return frozenset(pid for pid in holders or () if Path(f"/proc/{pid}").exists())


def _use(handle: Any, since: int) -> dict[int, float] | None:
    """Share of the card by process since a time in microseconds; those that used nothing are not listed."""
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(handle, since)
    except pynvml.NVMLError as error:
        if error.value in {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_SUCCESS}:
            return {}  # nobody used it
        if error.value in _NOT_TOLD:
            return None
        raise
    found: dict[int, float] = {}
    for sample in samples:
        if sample.smUtil <= 100 and sample.timeStamp > since:
            found[sample.pid] = max(found.get(sample.pid, 0), sample.smUtil / 100)
    return found


def _peak(handle: Any, since: int) -> float | None:
    """The largest of the card's samples since a time in microseconds."""
    try:
        _, samples = pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, since)
    except pynvml.NVMLError as error:
        if error.value in {*_NOT_TOLD, pynvml.NVML_ERROR_NOT_FOUND}:
            return None
        raise
    return max((sample.sampleValue.uiVal / 100 for sample in samples), default=None)
