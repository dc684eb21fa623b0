"""What can be seen of a GPU from inside a workspace.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class End(StrEnum):
    """How a probe ended, which is a process of its own."""

    ANSWERED = "answered"
    HUNG = "hung"
    CRASHED = "crashed"
    NOT_STARTED = "not-started"
    """Its interpreter could not be run, which says nothing about the GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How far the questions to the driver got."""

    end: End = End.ANSWERED
    step: str = ""
    """What was asked last, as `driver_probe` names it; empty if all was answered, or nothing was asked."""
    error: str = ""
    """How it ended, in words, if not well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFile:
    """One file below `/dev`."""

    path: str
    usable: bool
    """This user may read and write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuda:
    """What CUDA's driver interface says; every field is None where it got no further."""

    library: str | None = None
    """Path of the `libcuda.so.1` that was loaded; None if none was found."""
    error: str = ""
    """Why it could not be loaded."""
    init: int | None = None
    """Result of `cuInit`, a `CUresult`: 0 is well."""
    version: int | None = None
    """Newest CUDA that the driver supports: 13000 is 13.0."""
    devices: tuple[str, ...] | None = None
    """Names of the devices."""
    capability: tuple[int, int] | None = None
    """Compute capability of the first device."""
    allocate: int | None = None
    """Result of making a context and taking a little memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvml:
    """What the management library says, which `nvidia-smi` uses too."""

    init: int | None = None
    """Result of `nvmlInit_v2`; None if the library is not there."""
    driver: str = ""
    devices: tuple[str, ...] = ()
    mig: bool | None = None
    """Whether the first card is cut into slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """What one framework says in the environment that kernels use."""

    name: str
    version: str = ""
    cuda: str | None = None
    """CUDA that it was built for; None for a build without."""
    devices: int | None = None
    """How many GPUs it sees; None if asking failed."""
    arches: tuple[str, ...] = ()
    """Generations of cards that it was built for: ``sm_90``."""
    end: End = End.ANSWERED
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that was seen; None means that it could not be looked at."""

    device_files: tuple[DeviceFile, ...] = ()
    kernel_driver: str | None = None
    """Version of the kernel's driver, from `/proc/driver/nvidia/version`."""
    probe: Probe = field(default_factory=Probe)
    """How cuda and nvml, below, came to be known."""
    cuda: Cuda = field(default_factory=Cuda)
    nvml: Nvml = field(default_factory=Nvml)
    frameworks: tuple[Framework, ...] | None = None
    python: str = ""
    """Interpreter whose frameworks were asked."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that matter here."""
    image_cuda: str = ""
    """CUDA that the image was made for; empty if it does not say."""

    @property
    def cards(self) -> tuple[DeviceFile, ...]:
        return tuple(one for one in self.device_files if one.path.removeprefix("/dev/nvidia").isdigit())

    def device(self, name: str) -> DeviceFile | None:
        return next((one for one in self.device_files if one.path == f"/dev/{name}"), None)


def facts_from(data: Mapping[str, Any]) -> Facts:
    """Read facts that were written down as JSON."""
    fields = dict(data)
    for name, kind in (("cuda", Cuda), ("nvml", Nvml), ("probe", Probe)):
        fields[name] = kind(**_fields(fields.get(name) or {}))
    fields["device_files"] = tuple(DeviceFile(**one) for one in fields.get("device_files") or ())
    if fields.get("frameworks") is not None:
        fields["frameworks"] = tuple(Framework(**_fields(one)) for one in fields["frameworks"])
    return Facts(**fields)


def _fields(written: Mapping[str, Any]) -> dict[str, Any]:
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in written.items()}
    return {**fields, "end": End(written["end"])} if "end" in written else fields
