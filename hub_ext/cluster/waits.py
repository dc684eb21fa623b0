"""The one shape of a wait: where a start is, why it is there, whether that heals, and what comes next.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from ..quota.verdicts import Fault, Reason
from .nodes import Node
from .workloads import Workload


class Stage(StrEnum):
    """How far a start is, in the order that people see."""

    REQUESTED = "requested"
    QUEUED = "queued"
    WAITING = "waiting"
    """For a node with room."""
    SCALING = "scaling"
    VOLUME = "volume"
    PULLING = "pulling"
    PREPARING = "preparing"
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"


class WaitReason(StrEnum):
    """Why a start is where it is; the same word is in the log, the metric and the JSON."""

    REQUESTED = "requested"
    IN_QUEUE = "in-queue"
    QUEUE_TOO_SMALL = "queue-too-small"
    QUEUE_STOPPED = "queue-stopped"
    GATED = "gated"
    SCHEDULING = "scheduling"
    NO_ROOM = "no-room"
    SCALING_UP = "scaling-up"
    NO_SCALE_UP = "no-scale-up"
    NO_MATCHING_NODE = "no-matching-node"
    TOO_LARGE = "too-large"
    ZONE_CONFLICT = "zone-conflict"
    VOLUME_UNBOUND = "volume-unbound"
    VOLUME_MISSING = "volume-missing"
    VOLUME_ATTACHING = "volume-attaching"
    VOLUME_ELSEWHERE = "volume-elsewhere"
    VOLUME_FAILED = "volume-failed"
    CLAIM_REFUSED = "claim-refused"
    NODE_SILENT = "node-silent"
    NETWORK_FAILED = "network-failed"
    PULLING = "pulling"
    IMAGE_NOT_FOUND = "image-not-found"
    IMAGE_ACCESS = "image-access"
    IMAGE_INVALID = "image-invalid"
    IMAGE_PLATFORM = "image-platform"
    IMAGE_ABSENT = "image-absent"
    REGISTRY_UNREACHABLE = "registry-unreachable"
    REGISTRY_BUSY = "registry-busy"
    REGISTRY_CERTIFICATE = "registry-certificate"
    DISK_FULL = "disk-full"
    PREPARING = "preparing"
    STARTING = "starting"
    CONFIG_MISSING = "config-missing"
    RUNTIME_ERROR = "runtime-error"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out-of-memory"
    SHARE_REFUSED = "share-refused"
    DEVICE_TAKEN = "device-taken"
    DEVICE_UNHEALTHY = "device-unhealthy"
    NODE_REFUSED = "node-refused"
    NODE_LOST = "node-lost"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    DELETED = "deleted"
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What to tell somebody who waits. `text` is plain text: escape it in HTML."""

    stage: Stage
    reason: WaitReason | Reason
    """A word of the refusals while the API server does not take the pod yet."""
    text: str
    fatal: bool = False
    """It will not heal while the pod exists: stop waiting, say `text`, delete the pod."""
    again: bool = False
    """Of a fatal one: a new pod of the same kind may well succeed."""
    fault: Fault = Fault.CLUSTER
    counts: bool = True
    """Whether the time is taken from the start timeout; waiting in a queue or for a new node is not."""
    warning: bool = False
    """Whether to set it off: something is wrong, even if it may heal."""
    since: datetime | None = None
    detail: str = ""
    """For admins and the log: what Kubernetes said."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Numbers behind the text, by name."""

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        return {
            "stage": self.stage.value,
            "reason": self.reason.value,
            "text": self.text,
            "fatal": self.fatal,
            "again": self.again,
            "fault": self.fault.value,
            "countsTowardTimeout": self.counts,
            "warning": self.warning,
            "since": self.since.isoformat() if self.since else None,
            "detail": self.detail,
            **({"data": dict(self.data)} if self.data else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What starts of this kind took lately; None where nothing is known."""

    pull: timedelta | None = None
    """Of the image that is meant, if one is."""
    size: int | None = None
    """Bytes of that image as they were fetched last."""
    scale_up: timedelta | None = None
    warm: timedelta | None = None
    """From the request to the answer where the image was there, without waiting for a turn or for a node."""
    cold: timedelta | None = None
    """The same where it had to be fetched."""


NOTHING_USUAL: Final = Usual()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a workspace may run, as far as nodes can be seen."""

    nodes: int | None = None
    """Nodes that take it, full or not; None if nodes cannot be seen."""
    offering: int | None = None
    """Those of them that are large enough for it when they are empty."""
    faulty: tuple[str, ...] = ()
    """Those that would be large enough if they gave out all the GPUs that they have."""
    scales: bool = False
    """Whether nodes can be added."""
    zones: frozenset[str] = frozenset()
    """Zones of the nodes; empty if not all of them name theirs."""
    home_zones: frozenset[str] = frozenset()
    """Zones that the home can be attached in; empty if they are not known, or if it can be in any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is known around a pod when it is judged."""

    now: datetime
    node: Node | None = None
    """The one it was placed on, if nodes can be seen."""
    workload: Workload | None = None
    place: Place = Place()
    usual: Usual = Usual()
