"""Everything that the doctor can find, in the words that it is told in.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Who(StrEnum):
    """Who can mend it."""

    YOU = "you"
    IMAGE = "whoever makes the image"
    ADMIN = "an administrator"


class Reason(StrEnum):
    """What is wrong."""

    NO_DEVICES = "no-devices"
    DEVICES_CLOSED = "devices-closed"
    UVM_MISSING = "uvm-missing"
    DRIVER_NOT_LOADED = "driver-not-loaded"
    DRIVER_HANGS = "driver-hangs"
    DRIVER_CRASHED = "driver-crashed"
    CAPABILITIES = "capabilities"
    LIBCUDA_MISSING = "libcuda-missing"
    LIBCUDA_STUB = "libcuda-stub"
    LIBRARY_MISMATCH = "library-mismatch"
    COMPAT_UNSUPPORTED = "compat-unsupported"
    FABRIC = "fabric"
    MPS = "mps"
    HIDDEN = "hidden"
    NO_CUDA_DEVICE = "no-cuda-device"
    CARD_LOST = "card-lost"
    CUDA_FAILED = "cuda-failed"
    DRIVER_TOO_OLD = "driver-too-old"
    MEMORY_TAKEN = "memory-taken"
    CARD_BUSY = "card-busy"
    FRAMEWORK_WITHOUT_CUDA = "framework-without-cuda"
    FRAMEWORK_TOO_NEW = "framework-too-new"
    FRAMEWORK_WRONG_CARD = "framework-wrong-card"
    FRAMEWORK_BLIND = "framework-blind"
    FRAMEWORK_BROKEN = "framework-broken"
    FRAMEWORK_HANGS = "framework-hangs"


@dataclass(frozen=True, slots=True)
class Told:
    """How a reason is told."""

    sentence: str
    who: Who
    remedy: str


TEXTS: Final[dict[Reason, Told]] = {
    Reason.NO_DEVICES: Told(
        "This workspace was given no GPU: there are no NVIDIA devices in it.",
        Who.YOU,
        "Start a workspace with a GPU. If this one is shown as having one, tell an administrator: the "
        "container runtime did not put it in.",
    ),
    Reason.DEVICES_CLOSED: Told(
        "The devices of the GPU are here, and this user may not open them.",
        Who.ADMIN,
        "The permissions come from the node: see NVreg_DeviceFileMode, and the user id of the pod.",
    ),
    Reason.UVM_MISSING: Told(
        "The device nvidia-uvm is missing: nvidia-smi works without it, CUDA does not.",
        Who.ADMIN,
        "Load the module nvidia-uvm on the node (nvidia-modprobe -u -c=0) and start the workspace anew.",
    ),
    Reason.DRIVER_NOT_LOADED: Told(
        "The driver of the node does not run.",
        Who.ADMIN,
        "See the driver's pod of the GPU Operator, or dmesg, on the node.",
    ),
    Reason.DRIVER_HANGS: Told(
        "The driver does not answer.",
        Who.ADMIN,
        "A card or driver that hangs is told by Xid messages in the node's kernel log (dmesg). Take the node "
        "out of service, reset the card or reboot; start the workspace elsewhere.",
    ),
    Reason.DRIVER_CRASHED: Told(
        "The driver's library is here, and whoever asks it crashes.",
        Who.ADMIN,
        "See Xid messages in the node's kernel log (dmesg), and that its driver was installed whole. If "
        "only this image has it, LD_PRELOAD or LD_LIBRARY_PATH puts another library in the place of the "
        "driver's.",
    ),
    Reason.CAPABILITIES: Told(
        "The container was started for monitoring only: nvidia-smi works, the library for computing is not "
        "here.",
        Who.IMAGE,
        "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility in the image or in the profile's environment.",
    ),
    Reason.LIBCUDA_MISSING: Told(
        "The driver's library libcuda.so.1 is not here.",
        Who.ADMIN,
        "The container runtime puts it in: see the NVIDIA container toolkit (CDI) on the node, and the "
        "pool's "
        "runtimeClass.",
    ),
    Reason.LIBCUDA_STUB: Told(
        "A stand-in for libcuda.so.1 is found before the real one.",
        Who.YOU,
        "Take the folder with stubs out of LD_LIBRARY_PATH. If you did not set it, tell whoever makes the "
        "image.",
    ),
    Reason.LIBRARY_MISMATCH: Told(
        "The driver's libraries and the driver of the node are of different versions.",
        Who.ADMIN,
        "The driver was updated while the node ran: reboot the node. If only this workspace has it, a copy "
        "of "
        "the driver's libraries is in the image and does not belong there.",
    ),
    Reason.COMPAT_UNSUPPORTED: Told(
        "The image brings a newer driver interface (cuda-compat) that this card cannot use.",
        Who.IMAGE,
        "Take cuda-compat out of LD_LIBRARY_PATH; it works on data-center cards only.",
    ),
    Reason.FABRIC: Told(
        "The cards are not ready: NVIDIA's fabric manager does not run on the node.",
        Who.ADMIN,
        "Start nvidia-fabricmanager in the version of the driver; machines with NVSwitch need it.",
    ),
    Reason.MPS: Told(
        "The card is shared by MPS, and its server cannot be reached.",
        Who.ADMIN,
        "See the MPS control daemon of the device plugin on the node; start the workspace anew when it runs.",
    ),
    Reason.HIDDEN: Told(
        "CUDA_VISIBLE_DEVICES hides the GPU.",
        Who.YOU,
        "Take it out of your environment: the cluster has chosen the GPU already, and its number here is 0.",
    ),
    Reason.NO_CUDA_DEVICE: Told(
        "The driver works, and shows no device to CUDA.",
        Who.ADMIN,
        "A card in MIG mode without slices looks like this: see nvidia.com/mig.config of the node.",
    ),
    Reason.CARD_LOST: Told(
        "The card has fallen off the bus.",
        Who.ADMIN,
        "Take the node out of service (see its Xid messages) and start the workspace elsewhere.",
    ),
    Reason.CUDA_FAILED: Told(
        "CUDA cannot be initialized.",
        Who.ADMIN,
        "Tell an administrator the number of the error.",
    ),
    Reason.DRIVER_TOO_OLD: Told(
        "The driver of the node is older than the image needs.",
        Who.ADMIN,
        "Update the driver, or offer this image in another pool; you may pick an image for an older CUDA.",
    ),
    Reason.MEMORY_TAKEN: Told(
        "The memory of the card is taken: others share it, and shares do not keep memory apart.",
        Who.YOU,
        "End kernels of your own that hold memory; or pick a slice or a whole card, which nobody shares.",
    ),
    Reason.CARD_BUSY: Told(
        "The card is held by one process alone.",
        Who.ADMIN,
        "Its compute mode is exclusive: set it to default (nvidia-smi -c 0), or use MPS.",
    ),
    Reason.FRAMEWORK_WITHOUT_CUDA: Told(
        "The GPU works. The framework was built without CUDA.",
        Who.YOU,
        "You, or the image, installed the build for processors. Take your own copy away (pip uninstall; look "
        "in "
        "~/.local), or install the build for CUDA.",
    ),
    Reason.FRAMEWORK_TOO_NEW: Told(
        "The GPU works. The framework was built for a newer CUDA than the driver of the node supports.",
        Who.YOU,
        "Install a build for an older CUDA, or pick a workspace whose node has a newer driver.",
    ),
    Reason.FRAMEWORK_WRONG_CARD: Told(
        "The GPU works. The framework was not built for this generation of cards.",
        Who.IMAGE,
        "Install a version of it that knows the card.",
    ),
    Reason.FRAMEWORK_BLIND: Told(
        "The GPU works, and the framework does not see it.",
        Who.YOU,
        "Restart the kernel. If that does not help, tell whoever makes the image what is told here.",
    ),
    Reason.FRAMEWORK_BROKEN: Told(
        "The framework cannot be loaded.",
        Who.YOU,
        "Packages in ~/.local come before those of the image: move ~/.local away and try again.",
    ),
    Reason.FRAMEWORK_HANGS: Told(
        "The GPU works, and the framework does not answer.",
        Who.YOU,
        "Ask again: the first start from a cold disk is slow. If it hangs again, move ~/.local away, and "
        "then tell whoever makes the image.",
    ),
}
