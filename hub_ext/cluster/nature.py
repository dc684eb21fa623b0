"""What kind of wait each reason is, and how a judgement becomes one.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ..quota.verdicts import Fault, Refusal
from .events import Event
from .texts import sentence
from .waits import Stage, Wait, WaitReason

_STAGES: Final = {
    Stage.REQUESTED: {WaitReason.REQUESTED},
    Stage.QUEUED: {
        WaitReason.IN_QUEUE,
        WaitReason.QUEUE_TOO_SMALL,
        WaitReason.QUEUE_STOPPED,
        WaitReason.GATED,
    },
    Stage.WAITING: {
        WaitReason.SCHEDULING,
        WaitReason.NO_ROOM,
        WaitReason.NO_SCALE_UP,
        WaitReason.NO_MATCHING_NODE,
        WaitReason.TOO_LARGE,
        WaitReason.CLAIM_REFUSED,
        WaitReason.DEVICE_UNHEALTHY,
        WaitReason.NODE_SILENT,
    },
    Stage.SCALING: {WaitReason.SCALING_UP},
    Stage.VOLUME: {
        WaitReason.ZONE_CONFLICT,
        WaitReason.VOLUME_UNBOUND,
        WaitReason.VOLUME_MISSING,
        WaitReason.VOLUME_ATTACHING,
        WaitReason.VOLUME_ELSEWHERE,
        WaitReason.VOLUME_FAILED,
    },
    Stage.PULLING: {
        WaitReason.PULLING,
        WaitReason.REGISTRY_BUSY,
        WaitReason.REGISTRY_UNREACHABLE,
    },
    Stage.PREPARING: {WaitReason.PREPARING},
    Stage.RUNNING: {WaitReason.RUNNING},
}
_STAGE_OF: Final = {reason: stage for stage, reasons in _STAGES.items() for reason in reasons}
"""Where a start is while it waits for this; what is not named is in `STARTING`."""

_QUEUES: Final = frozenset({Stage.QUEUED, Stage.SCALING})
"""Stages in which nothing is done for a start yet: it waits for its turn, or for a node."""

_QUIET: Final = frozenset(
    {
        WaitReason.REQUESTED,
        WaitReason.IN_QUEUE,
        WaitReason.GATED,
        WaitReason.SCHEDULING,
        WaitReason.NO_ROOM,
        WaitReason.SCALING_UP,
        WaitReason.NO_SCALE_UP,
        WaitReason.VOLUME_UNBOUND,
        WaitReason.VOLUME_ATTACHING,
        WaitReason.PULLING,
        WaitReason.PREPARING,
        WaitReason.STARTING,
        WaitReason.RUNNING,
    }
)
"""Ordinary waits: nothing is wrong."""

_USER: Final = frozenset({WaitReason.TOO_LARGE, WaitReason.OUT_OF_MEMORY})
_ADMIN: Final = frozenset(
    {
        WaitReason.QUEUE_TOO_SMALL,
        WaitReason.QUEUE_STOPPED,
        WaitReason.NO_MATCHING_NODE,
        WaitReason.ZONE_CONFLICT,
        WaitReason.VOLUME_MISSING,
        WaitReason.CLAIM_REFUSED,
        WaitReason.IMAGE_NOT_FOUND,
        WaitReason.IMAGE_ACCESS,
        WaitReason.IMAGE_INVALID,
        WaitReason.IMAGE_PLATFORM,
        WaitReason.IMAGE_ABSENT,
        WaitReason.REGISTRY_CERTIFICATE,
        WaitReason.DISK_FULL,
        WaitReason.CONFIG_MISSING,
        WaitReason.RUNTIME_ERROR,
        WaitReason.CRASHED,
        WaitReason.SHARE_REFUSED,
    }
)

_AGAIN: Final = frozenset(
    {
        WaitReason.DEVICE_TAKEN,
        WaitReason.DEVICE_UNHEALTHY,
        WaitReason.NODE_REFUSED,
        WaitReason.NODE_LOST,
        WaitReason.EVICTED,
        WaitReason.PREEMPTED,
        WaitReason.DELETED,
    }
)
"""What ends a pod and may well spare the next one."""


def wait(
    reason: WaitReason,
    what: str = "",
    *,
    fatal: bool = False,
    seen: Event | datetime | None = None,
    detail: str = "",
    data: Mapping[str, Any] | None = None,
) -> Wait:
    """Make the wait that a reason means.

    Parameters
    ----------
    what
        What the text of the reason leaves room for.
    seen
        Since when, or the event that says so and gives the detail.
    """
    since = seen.first if isinstance(seen, Event) else seen
    detail = detail or (seen.message if isinstance(seen, Event) else "")
    stage = Stage.FAILED if fatal else _STAGE_OF.get(reason, Stage.STARTING)
    fault = Fault.USER if reason in _USER else Fault.ADMIN if reason in _ADMIN else Fault.CLUSTER
    return Wait(
        stage=stage,
        reason=reason,
        text=sentence(reason, what),
        fatal=fatal,
        again=fatal and reason in _AGAIN,
        fault=fault,
        counts=_STAGE_OF.get(reason) not in _QUEUES,
        warning=reason not in _QUIET,
        since=since,
        detail=detail,
        data=data or {},
    )


def held_up(problem: Refusal) -> Wait:
    """Make the wait for something that keeps the API server from taking a pod, and is tried again."""
    return Wait(
        stage=Stage.REQUESTED,
        reason=problem.reason,
        text=problem.text,
        fault=problem.fault,
        warning=True,
        detail=problem.detail,
    )
