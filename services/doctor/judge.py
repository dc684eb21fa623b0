"""From what was seen to what is wrong, from the ground up.

Sources: CUDA driver API (`CUresult`), NVML (`nvmlReturn_t`), CUDA compatibility guide.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Final

from .facts import End, Facts, Framework
from .reasons import Reason

NVML_LOST: Final = 15
NVML_DRIVER_NOT_LOADED: Final = 9
NVML_MISMATCH: Final = 18
CUDA_OUT_OF_MEMORY: Final = 2
CUDA_NO_DEVICE: Final = 100
CUDA_INVALID_DEVICE: Final = 101
INIT: Final = {
    34: Reason.LIBCUDA_STUB,
    35: Reason.DRIVER_TOO_OLD,
    46: Reason.CARD_BUSY,
    802: Reason.FABRIC,
    803: Reason.LIBRARY_MISMATCH,
    804: Reason.COMPAT_UNSUPPORTED,
    805: Reason.MPS,
    806: Reason.MPS,
    807: Reason.MPS,
    808: Reason.MPS,
    809: Reason.MPS,
    810: Reason.MPS,
}
"""What errors of `cuInit` and of making a context mean, where they mean one thing."""


class Layer(StrEnum):
    """What the next one stands on."""

    DEVICES = "devices"
    DRIVER = "driver"
    LIBRARIES = "libraries"
    CUDA = "CUDA"
    MEMORY = "memory"
    FRAMEWORKS = "frameworks"


STEPS: Final = {
    "nvml": Layer.DRIVER,
    "libcuda": Layer.LIBRARIES,
    "cuInit": Layer.CUDA,
    "memory": Layer.MEMORY,
}
"""What is broken where the driver's probe ended at a step."""


LOST: Final = {End.HUNG: Reason.DRIVER_HANGS, End.CRASHED: Reason.DRIVER_CRASHED}


class Health(StrEnum):
    """How a layer is."""

    WELL = "well"
    BROKEN = "broken"
    FOLLOWS = "follows"
    """It cannot work, since one below it does not."""
    UNKNOWN = "unknown"
    """It could not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to say about one layer."""

    layer: Layer
    health: Health
    reason: Reason | None = None
    evidence: str = ""


def diagnose(facts: Facts) -> tuple[Verdict, ...]:
    """Judge all layers; the first that is broken is the cause."""
    verdicts: list[Verdict] = []
    for layer, judge in _JUDGES.items():
        if any(one.health is Health.BROKEN for one in verdicts):
            verdicts.append(Verdict(layer=layer, health=Health.FOLLOWS))
        else:
            verdicts.append(_lost(layer, facts) or judge(facts))
    return tuple(verdicts)


def cause(verdicts: tuple[Verdict, ...]) -> Verdict | None:
    """Give the layer that is broken, if one is."""
    return next((one for one in verdicts if one.health is Health.BROKEN), None)


def _lost(layer: Layer, facts: Facts) -> Verdict | None:
    """Judge a layer that the driver's probe has no answer about; None if it has one."""
    probe = facts.probe
    if probe.end is End.NOT_STARTED and layer in STEPS.values():
        return Verdict(layer=layer, health=Health.UNKNOWN, evidence=probe.error)
    if probe.end in LOST and layer is STEPS.get(probe.step, Layer.DRIVER):
        return _broken(layer, LOST[probe.end], f"{probe.step or 'the probe'}: {probe.error}")
    return None


def _devices(facts: Facts) -> Verdict:
    seen = ", ".join(one.path for one in facts.device_files)
    if not facts.cards and facts.device("dxg") is None:
        wanted = facts.environment.get("NVIDIA_VISIBLE_DEVICES")
        said = f"NVIDIA_VISIBLE_DEVICES={wanted}" if wanted is not None else "no /dev/nvidia0 or the like"
        return _broken(Layer.DEVICES, Reason.NO_DEVICES, said)
    closed = [one.path for one in facts.device_files if not one.usable and "caps" not in one.path]
    if closed:
        return _broken(Layer.DEVICES, Reason.DEVICES_CLOSED, ", ".join(closed))
    return Verdict(layer=Layer.DEVICES, health=Health.WELL, evidence=seen)


def _driver(facts: Facts) -> Verdict:
    match facts.nvml.init:
        case code if code == NVML_DRIVER_NOT_LOADED:
            return _broken(Layer.DRIVER, Reason.DRIVER_NOT_LOADED, f"nvmlInit: {code}")
        case code if code == NVML_LOST:
            return _broken(Layer.DRIVER, Reason.CARD_LOST, f"nvmlInit: {code}")
    if facts.kernel_driver is None and not facts.nvml.driver:
        return Verdict(
            layer=Layer.DRIVER, health=Health.UNKNOWN, evidence="/proc/driver/nvidia cannot be read"
        )
    return Verdict(
        layer=Layer.DRIVER,
        health=Health.WELL,
        evidence=f"version {facts.kernel_driver or facts.nvml.driver}",
    )


def _libraries(facts: Facts) -> Verdict:
    cuda = facts.cuda
    if facts.nvml.init == NVML_MISMATCH:
        return _broken(Layer.LIBRARIES, Reason.LIBRARY_MISMATCH, f"nvmlInit: {facts.nvml.init}")
    if cuda.library is None:
        capabilities = facts.environment.get("NVIDIA_DRIVER_CAPABILITIES", "")
        kinds = {part.strip() for part in capabilities.split(",") if part.strip()}
        if kinds and not kinds & {"compute", "all"}:
            said = f"NVIDIA_DRIVER_CAPABILITIES={capabilities}"
            return _broken(Layer.LIBRARIES, Reason.CAPABILITIES, said)
        return _broken(Layer.LIBRARIES, Reason.LIBCUDA_MISSING, cuda.error)
    if cuda.init == 34 or PurePath(cuda.library).parent.name == "stubs":
        return _broken(Layer.LIBRARIES, Reason.LIBCUDA_STUB, cuda.library)
    return Verdict(layer=Layer.LIBRARIES, health=Health.WELL, evidence=cuda.library)


def _cuda(facts: Facts) -> Verdict:
    cuda = facts.cuda
    said = f"cuInit: {cuda.init}" if cuda.init is not None else cuda.error
    if cuda.init != 0:
        return _broken(Layer.CUDA, _why_not(facts), said)
    if not cuda.devices:
        return _broken(Layer.CUDA, _why_none(facts), _visible(facts) or said)
    if facts.image_cuda and cuda.version is not None and _major(facts.image_cuda) > cuda.version // 1000:
        said = f"the image is for CUDA {facts.image_cuda}, the driver supports {_dotted(cuda.version)}"
        return _broken(Layer.CUDA, Reason.DRIVER_TOO_OLD, said)
    about = f"{', '.join(cuda.devices)}; the driver supports CUDA {_dotted(cuda.version or 0)}"
    return Verdict(layer=Layer.CUDA, health=Health.WELL, evidence=about)


def _why_not(facts: Facts) -> Reason:
    """Say why CUDA does not begin."""
    code = facts.cuda.init
    if code in INIT:
        return INIT[code]
    if code in {CUDA_NO_DEVICE, CUDA_INVALID_DEVICE}:
        return _why_none(facts)
    if facts.cards and facts.device("nvidia-uvm") is None:
        return Reason.UVM_MISSING
    return Reason.CUDA_FAILED


def _why_none(facts: Facts) -> Reason:
    return Reason.HIDDEN if _visible(facts) else Reason.NO_CUDA_DEVICE


def _visible(facts: Facts) -> str:
    value = facts.environment.get("CUDA_VISIBLE_DEVICES")
    return f"CUDA_VISIBLE_DEVICES={value!r}" if value is not None else ""


def _memory(facts: Facts) -> Verdict:
    code = facts.cuda.allocate
    if code is None:
        return Verdict(layer=Layer.MEMORY, health=Health.UNKNOWN, evidence=facts.cuda.error)
    said = f"taking 1 MiB: {code}"
    if code == 0:
        return Verdict(layer=Layer.MEMORY, health=Health.WELL, evidence="1 MiB could be taken")
    reason = Reason.MEMORY_TAKEN if code == CUDA_OUT_OF_MEMORY else INIT.get(code, Reason.CUDA_FAILED)
    return _broken(Layer.MEMORY, reason, said)


def _frameworks(facts: Facts) -> Verdict:
    if facts.frameworks is None:
        said = f"{facts.python or 'the interpreter of kernels'} could not be asked"
        return Verdict(layer=Layer.FRAMEWORKS, health=Health.UNKNOWN, evidence=said)
    for framework in facts.frameworks:
        if reason := _blind(framework, facts):
            return _broken(Layer.FRAMEWORKS, reason, _about(framework, facts))
    names = ", ".join(f"{one.name} {one.version} sees {one.devices}" for one in facts.frameworks)
    return Verdict(layer=Layer.FRAMEWORKS, health=Health.WELL, evidence=names or "none is installed")


def _blind(framework: Framework, facts: Facts) -> Reason | None:
    if framework.end is End.HUNG:
        return Reason.FRAMEWORK_HANGS
    if not framework.version:
        return Reason.FRAMEWORK_BROKEN
    if framework.cuda is None:
        return Reason.FRAMEWORK_WITHOUT_CUDA
    supported = facts.cuda.version
    if not framework.devices:
        too_new = supported is not None and framework.cuda and _major(framework.cuda) > supported // 1000
        return Reason.FRAMEWORK_TOO_NEW if too_new else Reason.FRAMEWORK_BLIND
    if framework.arches and facts.cuda.capability and not _runs_on(framework.arches, facts.cuda.capability):
        return Reason.FRAMEWORK_WRONG_CARD
    return None


def _runs_on(arches: tuple[str, ...], capability: tuple[int, int]) -> bool:
    """Say whether code for these generations runs on a card.

    Binary code (``sm_90``) runs on cards of the same major version and a minor version no less; code for
    later translation (``compute_90``) on anything newer.
    """
    for arch in arches:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)[af]?", arch)
        if not match:
            continue
        major, minor = int(match[2]), int(match[3])
        if match[1] == "sm" and major == capability[0] and minor <= capability[1]:
            return True
        if match[1] == "compute" and (major, minor) <= capability:
            return True
    return False


def _about(framework: Framework, facts: Facts) -> str:
    built = f"built for CUDA {framework.cuda}" if framework.cuda else "built without CUDA"
    return f"{framework.name} {framework.version} in {facts.python}, {built}: {framework.error or 'no GPU'}"


def _broken(layer: Layer, reason: Reason, evidence: str) -> Verdict:
    return Verdict(layer=layer, health=Health.BROKEN, reason=reason, evidence=evidence)


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 0


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


_JUDGES: Final[dict[Layer, Callable[[Facts], Verdict]]] = {
    Layer.DEVICES: _devices,
    Layer.DRIVER: _driver,
    Layer.LIBRARIES: _libraries,
    Layer.CUDA: _cuda,
    Layer.MEMORY: _memory,
    Layer.FRAMEWORKS: _frameworks,
}
