"""What can be seen of a GPU from inside a workspace.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    """Why it could not be loaded, or how the probe ended."""
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
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that was seen; None means that it could not be looked at."""

    device_files: tuple[DeviceFile, ...] = ()
    kernel_driver: str | None = None
    """Version of the kernel's driver, from `/proc/driver/nvidia/version`."""
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
    for name, kind in (("cuda", Cuda), ("nvml", Nvml)):
        fields[name] = kind(**_tuples(fields.get(name) or {}))
    fields["device_files"] = tuple(DeviceFile(**one) for one in fields.get("device_files") or ())
    if fields.get("frameworks") is not None:
        fields["frameworks"] = tuple(Framework(**_tuples(one)) for one in fields["frameworks"])
    return Facts(**fields)


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
