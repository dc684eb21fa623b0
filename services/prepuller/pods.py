"""The prepuller's own pods, read back: they are its only memory of what was fetched with which credentials.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from hub_ext.cluster.events import Event
from hub_ext.cluster.images import PULL_FAILED, PULL_STATES, classify, says_no_cause
from hub_ext.cluster.pods import Container, Pod, read_pod
from hub_ext.cluster.pulls import read_pull
from hub_ext.names import DOMAIN, LABEL_POOL
from hub_ext.quota.arithmetic import FINISHED_PHASES

from .reasons import Reason

LABEL_WANT: Final = f"{DOMAIN}/prepull-image"
"""Which want a pod is for: `Want.id`."""
ANNOTATION_NODE: Final = f"{DOMAIN}/prepull-node"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
COMPONENT: Final = "prepuller"
MAIN: Final = "image"
TOOL: Final = "tool"
_NEVER_LOCATED: Final = "ContainerStatusUnknown"
_REFUSED: Final = re.compile(r"OutOf\w+|NodeAffinity|UnexpectedAdmissionError|Node\w+|Preempting|Terminated")
_ENDED: Final = {
    "DeadlineExceeded": Reason.TIMEOUT,
    "Evicted": Reason.EVICTED,
    "NodeLost": Reason.NODE_LOST,
    "NodeShutdown": Reason.NODE_LOST,
}
"""By the reason of a pod that its node has given up; anything else of `_REFUSED` is a refusal."""
_DETAIL: Final = 600
"""Longest part of a message that is kept: a registry may answer with a whole page."""
_RUNTIME: Final = frozenset({"CreateContainerError", "CreateContainerConfigError", "RunContainerError"})
_SECRET_EVENT: Final = "FailedToRetrieveImagePullSecret"  # noqa: S105 - name of an event


class Step(StrEnum):
    """How far a pod is."""

    WAITING = "waiting"
    """For its node to take it."""
    PULLING = "pulling"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullPod:
    """One pod of the prepuller."""

    uid: str
    name: str
    node: str
    want: str
    image: str
    step: Step
    since: datetime
    """When it came to this step, to the second."""
    created: datetime
    ending: bool = False
    """It is being deleted; while its pull hangs the node does not let go of it."""
    reason: Reason | None = None
    detail: str = ""
    """What Kubernetes said."""
    seconds: float | None = None
    """How long the image took; None while it lasts, or if it was there."""
    size_bytes: int | None = None
    present: bool | None = None
    """Whether the image was there already; None if no event tells."""
    listed: bool = False
    """Whether its node listed the image at some time since: then it spells it as we do."""
    over: bool = False
    """Its node has ended it for good."""
    begun: datetime | None = None
    """Since when its node fetches the image itself; None before that, and if nothing tells."""
    noticed: datetime | None = None
    """When it was seen here to come to this step; None if it was there before. Clocks of nodes differ."""

    @property
    def since_here(self) -> datetime:
        """When it came to this step, by the clock that everything else goes by as far as possible."""
        return self.noticed or self.since

    @property
    def in_flight(self) -> bool:
        """Whether its node may be fetching: until it is done, over or gone, however it ends."""
        return self.step is not Step.DONE and not self.over


def read_pull_pod(item: Mapping[str, Any], events: Sequence[Event]) -> PullPod | None:
    """Read a pod with its events, oldest first; None for one that is not the prepuller's."""
    pod = read_pod(item)
    want, node = pod.labels.get(LABEL_WANT), pod.node or pod.notes.get(ANNOTATION_NODE, "")
    main = next((one for one in pod.containers if one.name == MAIN), None)
    if not want or not node or main is None:
        return None
    tool = next((one for one in pod.containers if one.name == TOOL), None)
    seen = _judge(pod, main, tool, events)
    found = PullPod(
        uid=pod.uid,
        name=pod.name,
        node=node,
        want=want,
        image=main.image,
        step=seen.step,
        since=seen.since or pod.created,
        created=pod.created,
        ending=pod.deleted is not None,
        over=pod.phase in FINISHED_PHASES,
        begun=seen.begun,
        reason=seen.reason,
        detail=" ".join(seen.detail.split())[:_DETAIL],
        seconds=_seconds(main, tool) if seen.step is Step.DONE else None,
    )
    return add_events(found, events)


def add_events(pod: PullPod, events: Sequence[Event]) -> PullPod:
    """Add what events tell about a pull that is done: its time, its size, whether it was needed."""
    if pod.step is not Step.DONE or not events:
        return pod
    pull = read_pull(MAIN, events)
    seconds = pull.took.total_seconds() if pull.took is not None else pod.seconds
    return replace(
        pod,
        seconds=None if pull.warm else seconds,
        size_bytes=pull.size_bytes or pod.size_bytes,
        present=pod.present if pull.warm is None else pull.warm,
    )


def _seconds(main: Container, tool: Container | None) -> float | None:
    """Say how long a pull took by what lies between the two containers, to the second."""
    if tool is None or tool.finished is None or main.started is None:
        return None
    return max(0.0, (main.started - tool.finished).total_seconds())


@dataclass(frozen=True, slots=True)
class _Seen:
    step: Step
    since: datetime | None = None
    reason: Reason | None = None
    detail: str = ""
    begun: datetime | None = None


def _judge(pod: Pod, main: Container, tool: Container | None, events: Sequence[Event]) -> _Seen:
    scheduled = pod.condition("PodScheduled")
    if pod.reason or pod.phase == "Failed":
        return _ended(pod, main, tool)
    if main.state in {"running", "terminated"}:
        return _Seen(Step.DONE, main.finished or main.started)
    if not pod.node:
        return _Seen(Step.WAITING, pod.created, detail=scheduled.message if scheduled else "")
    told = next((one.first for one in events if one.reason == "Pulling" and one.container == MAIN), None)
    begun = told or (tool.finished if tool else None)
    since = begun or (scheduled.since if scheduled else None)
    return _refused(main, tool, events) or _Seen(Step.PULLING, since, begun=begun)


def _ended(pod: Pod, main: Container, tool: Container | None) -> _Seen:
    """Judge a pod that its node has given up."""
    reason = _ENDED.get(pod.reason) or (Reason.NODE_REFUSED if _REFUSED.fullmatch(pod.reason) else None)
    if reason is not None:
        return _Seen(Step.FAILED, None, reason, f"{pod.reason}: {pod.message}")
    if main.state == "terminated" and main.reason != _NEVER_LOCATED:
        # Its image came: that the program in it failed is nobody's concern.
        return _Seen(Step.DONE, main.finished or main.started)
    if tool is not None and tool.exit_code:
        return _Seen(Step.FAILED, None, Reason.TOOL_IMAGE, tool.message or f"exit status {tool.exit_code}")
    return _Seen(Step.FAILED, None, Reason.NODE_LOST, pod.message or main.message)


def _refused(main: Container, tool: Container | None, events: Sequence[Event]) -> _Seen | None:
    """Say why a pod does not come on although its node has taken it; None if it does."""
    if tool is not None and tool.state == "waiting" and tool.reason in PULL_STATES:
        return _Seen(Step.FAILED, None, Reason.TOOL_IMAGE, _why(tool, events))
    if main.reason in _RUNTIME:
        return _Seen(Step.FAILED, None, Reason.RUNTIME_ERROR, main.message)
    if main.reason not in PULL_STATES:
        return None
    detail = _why(main, events)
    reason = Reason(classify(main.reason, detail).value)
    missing = next((one.message for one in events if one.reason == _SECRET_EVENT), "")
    if reason is Reason.IMAGE_ACCESS and missing:
        return _Seen(Step.FAILED, None, Reason.SECRET_MISSING, missing)
    return _Seen(Step.FAILED, None, reason, detail)


def _why(container: Container, events: Sequence[Event]) -> str:
    """Give the message that names the cause: while a kubelet backs off, older ones say only that."""
    told = [one.message for one in events if one.reason == "Failed" and one.container == container.name]
    cause = next((text for text in reversed(told) if text.startswith(PULL_FAILED)), "")
    return (cause if says_no_cause(container.message) else "") or container.message


def build_pull_labels(want: str, pools: Sequence[str]) -> dict[str, str]:
    """Build the labels that `read_pull_pod` reads."""
    pool = {LABEL_POOL: pools[0]} if len(pools) == 1 and pools[0] else {}
    return {COMPONENT_LABEL: COMPONENT, LABEL_WANT: want, **pool}
