"""The words of the prepuller: the same in the log, in metric labels, in JSON, on the page and in the docs.

Pure: no clock, no network.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hub_ext.cluster.waits import WaitReason


class State(StrEnum):
    """What is known of one image on one node, for the credentials that workspaces use."""

    PULLED = "pulled"
    PULLING = "pulling"
    FAILED = "failed"
    ABSENT = "absent"
    """Known not to be there, and not being fetched."""
    UNKNOWN = "unknown"
    """It may be there: nobody can tell."""


class Evidence(StrEnum):
    """Where a state is known from."""

    POD = "pod"
    """A pod of the prepuller on that node."""
    LISTED = "listed"
    """The node lists the image, and its kubelet (before 1.35) lets every pod use what is there."""
    LISTED_FOR_OTHERS = "listed-for-others"
    """The node lists the image. Its kubelet checks credentials, and who pulled it is not known."""
    NOT_LISTED = "not-listed"
    """The node lists all its images, and this is not among them."""
    LIST_CUT = "list-cut"
    """The node lists as many images as a kubelet lists at most: what is missing may be there."""
    NO_LIST = "no-list"
    """The node lists no images at all."""


class Reason(StrEnum):
    """Why an image did not come. Words that the hub knows too mean the same there."""

    IMAGE_NOT_FOUND = WaitReason.IMAGE_NOT_FOUND.value
    IMAGE_ACCESS = WaitReason.IMAGE_ACCESS.value
    IMAGE_INVALID = WaitReason.IMAGE_INVALID.value
    IMAGE_PLATFORM = WaitReason.IMAGE_PLATFORM.value
    IMAGE_ABSENT = WaitReason.IMAGE_ABSENT.value
    SECRET_MISSING = "secret-missing"  # noqa: S105 - a word, not a secret
    REGISTRY_UNREACHABLE = WaitReason.REGISTRY_UNREACHABLE.value
    REGISTRY_BUSY = WaitReason.REGISTRY_BUSY.value
    REGISTRY_CERTIFICATE = WaitReason.REGISTRY_CERTIFICATE.value
    TIMEOUT = "timeout"
    DISK_FULL = WaitReason.DISK_FULL.value
    NO_ROOM = WaitReason.NO_ROOM.value
    NODE_REFUSED = WaitReason.NODE_REFUSED.value
    NODE_LOST = WaitReason.NODE_LOST.value
    EVICTED = WaitReason.EVICTED.value
    TOOL_IMAGE = "tool-image"
    RUNTIME_ERROR = WaitReason.RUNTIME_ERROR.value
    POD_REFUSED = "pod-refused"
    PULLS_REFUSED = "pulls-refused"
    QUOTA_FULL = "quota-full"


class Blame(StrEnum):
    """What a failure is put down to, and therefore what is left alone for a while."""

    IMAGE = "image"
    """With these credentials, on every node."""
    REGISTRY = "registry"
    NODE = "node"
    PLATFORM = "platform"
    """This image on nodes of this architecture."""
    PAIR = "pair"
    """This image on this node."""
    ALL = "all"
    """Every pull, as when the tool's own image does not come."""


BLAMES: Final = {
    Reason.IMAGE_NOT_FOUND: Blame.IMAGE,
    Reason.IMAGE_ACCESS: Blame.IMAGE,
    Reason.IMAGE_INVALID: Blame.IMAGE,
    Reason.IMAGE_PLATFORM: Blame.PLATFORM,
    Reason.IMAGE_ABSENT: Blame.PAIR,
    Reason.SECRET_MISSING: Blame.IMAGE,
    Reason.REGISTRY_UNREACHABLE: Blame.REGISTRY,
    Reason.REGISTRY_BUSY: Blame.REGISTRY,
    Reason.REGISTRY_CERTIFICATE: Blame.REGISTRY,
    Reason.TIMEOUT: Blame.PAIR,
    Reason.DISK_FULL: Blame.NODE,
    Reason.NO_ROOM: Blame.NODE,
    Reason.NODE_REFUSED: Blame.NODE,
    Reason.NODE_LOST: Blame.NODE,
    Reason.EVICTED: Blame.NODE,
    Reason.TOOL_IMAGE: Blame.ALL,
    Reason.RUNTIME_ERROR: Blame.PAIR,
    Reason.POD_REFUSED: Blame.IMAGE,
    Reason.PULLS_REFUSED: Blame.ALL,
    Reason.QUOTA_FULL: Blame.ALL,
}

NEEDS_ADMIN: Final = frozenset(
    {
        Reason.IMAGE_NOT_FOUND,
        Reason.IMAGE_ACCESS,
        Reason.IMAGE_INVALID,
        Reason.IMAGE_PLATFORM,
        Reason.IMAGE_ABSENT,
        Reason.SECRET_MISSING,
        Reason.REGISTRY_CERTIFICATE,
        Reason.TOOL_IMAGE,
        Reason.POD_REFUSED,
        Reason.PULLS_REFUSED,
    }
)
"""What waiting does not heal."""

TEXTS: Final = {
    Reason.IMAGE_NOT_FOUND: "The registry has no such image. Correct the reference in the catalog.",
    Reason.IMAGE_ACCESS: "The registry asks for a login that the workspace does not have. Give the image "
    "`pullSecrets` in the catalog, and the same Secret in the prepuller's namespace.",
    Reason.IMAGE_INVALID: "The container runtime does not accept the reference.",
    Reason.IMAGE_PLATFORM: "The image was not built for the processors of this node. "
    "Say `architectures` in the catalog.",
    Reason.IMAGE_ABSENT: "The node may not fetch images (pull policy Never), and this one is not there.",
    Reason.SECRET_MISSING: "A pull secret of this image does not exist in the prepuller's namespace.",
    Reason.REGISTRY_UNREACHABLE: "The registry does not answer, or breaks off.",
    Reason.REGISTRY_BUSY: "The registry limits how much may be fetched.",
    Reason.REGISTRY_CERTIFICATE: "The node does not trust the registry's certificate.",
    Reason.TIMEOUT: "The pull took longer than `limits.timeout`.",
    Reason.DISK_FULL: "The disk of the node is full.",
    Reason.NO_ROOM: "The node holds as many pods as it may, or has no room for the smallest pod.",
    Reason.NODE_REFUSED: "The node did not take the pod.",
    Reason.NODE_LOST: "The node was lost.",
    Reason.EVICTED: "The node ran short and ended the pod.",
    Reason.TOOL_IMAGE: "The image of the tool (`pods.tool`) could not be fetched or run.",
    Reason.RUNTIME_ERROR: "The node could not start a container from the image.",
    Reason.POD_REFUSED: "The API server refuses the pod that is to fetch it.",
    Reason.PULLS_REFUSED: "The API server refuses every pod of the prepuller: its namespace, its rights, or "
    "a policy there is not as it needs them.",
    Reason.QUOTA_FULL: "A ResourceQuota of the prepuller's namespace is used up. It needs none: `limits` "
    "bound what is under way.",
}


class Hold(StrEnum):
    """Why a pull that is wanted is not begun now."""

    NODE_NOT_READY = "node-not-ready"
    NODE_CORDONED = "node-cordoned"
    DISK_PRESSURE = "disk-pressure"
    OVER_BUDGET = "over-budget"
    PINS_FULL = "pins-full"
    BACKOFF = "backoff"
    CANARY = "canary"
    """One node tries first; this one waits for it."""
    NODE_BUSY = "node-busy"
    POOL_LIMIT = "pool-limit"
    REGISTRY_LIMIT = "registry-limit"
    TOTAL_LIMIT = "total-limit"


HOLD_TEXTS: Final = {
    Hold.NODE_NOT_READY: "the node is not ready",
    Hold.NODE_CORDONED: "the node is closed for maintenance",
    Hold.DISK_PRESSURE: "the node is short of disk",
    Hold.OVER_BUDGET: "the images before it use up the node's disk budget",
    Hold.PINS_FULL: "as many pins are kept as `limits.pins` permits",
    Hold.BACKOFF: "it failed, and is tried again later",
    Hold.CANARY: "another node tries first",
    Hold.NODE_BUSY: "another image is being fetched to the node",
    Hold.POOL_LIMIT: "`limits.perPool` pulls are under way in the pool",
    Hold.REGISTRY_LIMIT: "as many pulls are under way from the registry as the limit permits",
    Hold.TOTAL_LIMIT: "`limits.total` pulls are under way",
}


class Removal(StrEnum):
    """Why a pod of the prepuller is deleted."""

    FAILED = "failed"
    """Its failure is noted; the kubelet would go on trying."""
    GONE = "gone"
    """Its image is not on the node any more: it pins nothing."""
    SUPERSEDED = "superseded"
    """The catalog does not need the image there any more."""
    OVER_BUDGET = "over-budget"
    """Images of more benefit need the disk."""
    DUPLICATE = "duplicate"
    """Another pod of the same image and node."""
