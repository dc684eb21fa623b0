"""The sentences about waiting, each written once. They are plain text: whoever puts one into HTML escapes it.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from .waits import WaitReason

_TELL: Final = "Please tell an administrator."
_AGAIN: Final = "It is tried again by itself."
_TURN: Final = "It starts by itself when it is its turn."
_STOPS: Final = "It starts as soon as somebody stops a workspace."
_PROMISES: Final = (_AGAIN, _TURN, _STOPS)
"""What is not true any more of a start that was given up."""

_TEXTS: Final[dict[WaitReason, Callable[[str], str]]] = {
    WaitReason.REQUESTED: lambda _: "The workspace is being created.",
    WaitReason.IN_QUEUE: lambda what: f"Waiting in the queue{what}. {_TURN}",
    WaitReason.QUEUE_TOO_SMALL: lambda what: f"The queue can never hold this workspace{what}. {_TELL}",
    WaitReason.QUEUE_STOPPED: lambda what: f"The queue{what} takes nothing at the moment. {_TELL}",
    WaitReason.GATED: lambda what: f"Held back by the cluster{what} until it is released.",
    WaitReason.SCHEDULING: lambda _: "Looking for a node.",
    WaitReason.NO_ROOM: lambda what: f"Waiting for a node with room: {what}. {_STOPS}",
    WaitReason.SCALING_UP: lambda what: f"A node is being added for this workspace{what}.",
    WaitReason.NO_SCALE_UP: lambda what: f"Waiting for room: no node can be added now{what}. {_STOPS}",
    WaitReason.NO_MATCHING_NODE: lambda what: f"No node of the cluster takes this workspace{what}. {_TELL}",
    WaitReason.TOO_LARGE: lambda what: (
        f"No node is large enough for this workspace{what}. Pick a smaller one."
    ),
    WaitReason.ZONE_CONFLICT: lambda what: (
        f"Your home volume cannot be moved to where this workspace has nodes{what}. {_TELL}"
    ),
    WaitReason.VOLUME_UNBOUND: lambda what: f"Waiting for the storage of your home{what}.",
    WaitReason.VOLUME_MISSING: lambda what: f"A volume of this workspace does not exist{what}. {_TELL}",
    WaitReason.VOLUME_ATTACHING: lambda _: "Attaching your storage.",
    WaitReason.VOLUME_ELSEWHERE: lambda what: (
        f"Your storage is still attached to another node{what}. {_AGAIN} This can take some minutes."
    ),
    WaitReason.VOLUME_FAILED: lambda what: f"Your storage could not be attached yet{what}. {_AGAIN}",
    WaitReason.CLAIM_REFUSED: lambda what: f"The cluster does not give this workspace its GPU{what}. {_TELL}",
    WaitReason.NODE_SILENT: lambda what: f"The node of the workspace{what} does not answer at the moment.",
    WaitReason.NETWORK_FAILED: lambda _: (
        f"The node could not set up the network of the workspace yet. {_AGAIN}"
    ),
    WaitReason.PULLING: lambda what: f"Fetching the software of the workspace{what}.",
    WaitReason.IMAGE_NOT_FOUND: lambda what: f"The image of this workspace does not exist{what}. {_TELL}",
    WaitReason.IMAGE_ACCESS: lambda what: (
        f"The registry does not give out the image of this workspace{what}. {_TELL}"
    ),
    WaitReason.IMAGE_INVALID: lambda what: f"The name of the image is not valid{what}. {_TELL}",
    WaitReason.IMAGE_PLATFORM: lambda what: (
        f"The image of this workspace was not made for the processors of its node{what}. {_TELL}"
    ),
    WaitReason.IMAGE_ABSENT: lambda what: (
        f"The image of this workspace is not on the node, and may not be fetched{what}. {_TELL}"
    ),
    WaitReason.REGISTRY_UNREACHABLE: lambda what: f"The image registry does not answer{what}. {_AGAIN}",
    WaitReason.REGISTRY_BUSY: lambda what: f"The image registry has too much to do{what}. {_AGAIN}",
    WaitReason.REGISTRY_CERTIFICATE: lambda what: (
        f"The node does not trust the certificate of the image registry{what}. {_TELL}"
    ),
    WaitReason.DISK_FULL: lambda _: f"The disk of the node is full. {_TELL}",
    WaitReason.PREPARING: lambda what: f"Preparing the workspace{what}.",
    WaitReason.STARTING: lambda _: "Starting the workspace.",
    WaitReason.CONFIG_MISSING: lambda what: (
        f"Something that this workspace refers to does not exist{what}. {_TELL}"
    ),
    WaitReason.RUNTIME_ERROR: lambda _: f"The node could not start the workspace. {_TELL}",
    WaitReason.CRASHED: lambda what: f"The workspace ended while it was starting{what}. {_TELL}",
    WaitReason.OUT_OF_MEMORY: lambda _: (
        "The workspace used up its memory while it was starting. Pick one with more memory."
    ),
    WaitReason.SHARE_REFUSED: lambda what: (
        f"This workspace asks for more than one share of a GPU{what}, and only single shares are given out; "
        f"two would not be twice the GPU. {_TELL}"
    ),
    WaitReason.DEVICE_TAKEN: lambda _: (
        "The GPU was given to somebody else in the same moment. Please start again."
    ),
    WaitReason.DEVICE_UNHEALTHY: lambda what: (
        f"The GPU of the node{what} has a fault and is not given out. Please start again; {_TELL.lower()}"
    ),
    WaitReason.NODE_REFUSED: lambda what: f"The node did not take the workspace{what}. Please start again.",
    WaitReason.NODE_LOST: lambda what: f"The node of the workspace{what} was lost. Please start again.",
    WaitReason.EVICTED: lambda what: f"The node ended the workspace{what}. Please start again.",
    WaitReason.PREEMPTED: lambda what: (
        f"Preempted by queue policy: something more urgent needed the room{what}. Please start again."
    ),
    WaitReason.DELETED: lambda _: "The workspace was deleted while it was starting. Please start again.",
    WaitReason.RUNNING: lambda _: "The workspace runs; waiting for it to answer.",
}


def sentence(reason: WaitReason, what: str = "") -> str:
    """Say why a start waits; `what` is put in where the reason leaves room for it."""
    return _TEXTS[reason](what)


def inside(text: str) -> str:
    """Put a detail in brackets behind a word; nothing stays nothing."""
    return f" ({text})" if text else ""


def span(time: timedelta) -> str:
    """Write a duration roughly, as people say it."""
    seconds = round(time.total_seconds())
    if seconds < 90:
        return f"{max(1, seconds)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"


def timed_out(text: str) -> str:
    """Turn the last thing that was waited for into the sentence that ends the start."""
    for promise in _PROMISES:
        text = text.replace(promise, "")
    return f"The workspace did not start in time. {' '.join(text.split())}"
