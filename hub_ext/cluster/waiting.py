"""Why a start waits, whether that heals, and what comes next: one answer from pod, events and node.

The first rule that applies wins, from the end of a pod's life to its beginning: what has ended, what holds it
back, where it may run, what the node makes of it.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ..units import gib
from .admission import judge_crash, judge_refused
from .events import Event
from .images import HEALS, PULL_FAILED, PULL_STATES, classify, short_name
from .nature import wait
from .pods import Container, Pod
from .queueing import judge_end, judge_gates
from .scheduling import PATIENCE, judge_scheduling
from .texts import inside, span
from .waits import Around, Wait, WaitReason

_PULL_EVENTS: Final = frozenset({"Pulling", "Pulled", "Failed", "BackOff"})
_NETWORK_FAILED: Final = "FailedCreatePodSandBox"
_SETUP_FAILED: Final = frozenset({"FailedAttachVolume", "FailedMount", "FailedMapVolume", _NETWORK_FAILED})
_SETUP_DONE: Final = frozenset({"SuccessfulAttachVolume", "Pulling", "Pulled", "Created", "Started"})
_RUNTIME_ERRORS: Final = frozenset(
    {"CreateContainerError", "RunContainerError", "StartError", "PostStartHookError"}
)
_MISSING: Final = re.compile(
    r"(?:^|[:,] |: \[)(?P<what>(?:secret|configmap) \"[^\"]+\") not found(?=$|[,\]])"
)
"""What the kubelet says of an environment, and at the end of what it says of a mount."""
_ELSEWHERE: Final = "Multi-Attach error for volume "
"""Of the attach-detach controller; which pods and nodes have it follows."""
_SLOW: Final = 3
"""A pull that takes so many times what is usual is called slow."""


def explain(pod: Pod | None, events: Sequence[Event], around: Around) -> Wait:
    """Say what a start waits for.

    Parameters
    ----------
    pod
        None before it exists.
    events
        Of the pod, oldest first.
    """
    if pod is None:
        return wait(WaitReason.REQUESTED)
    return (
        judge_refused(pod)
        or judge_end(pod)
        or judge_gates(pod, around.workload)
        or judge_scheduling(pod, events, around)
        or _judge_node(pod, around)
        or _judge_containers(pod, events, around)
        or _judge_setup(pod, events, around.now)
        or _begin(pod)
    )


def _judge_node(pod: Pod, around: Around) -> Wait | None:
    node = around.node
    if node is None or node.ready is not False or pod.phase == "Running":
        return None
    return wait(WaitReason.NODE_SILENT, inside(node.name))


def _judge_containers(pod: Pod, events: Sequence[Event], around: Around) -> Wait | None:
    for container in pod.containers:
        if found := _judge_container(container, events, around):
            return found
    return None


def _judge_container(container: Container, events: Sequence[Event], around: Around) -> Wait | None:
    own = [one for one in events if one.container == container.name]
    if container.reason in PULL_STATES:
        return _judge_image(container, own, events)
    if crash := judge_crash(container):
        return crash
    if container.state != "waiting":
        return _judge_init(container)
    if container.reason == "CreateContainerConfigError":
        return _judge_config(container, own, around.now)
    if container.reason in _RUNTIME_ERRORS:
        return wait(
            WaitReason.RUNTIME_ERROR,
            fatal=container.restarts > 0 or container.reason == "CreateContainerError",
            detail=container.message,
        )
    return _judge_pull(container, own, around)


def _judge_init(container: Container) -> Wait | None:
    if not container.init or container.sidecar or container.state != "running":
        return None
    return wait(WaitReason.PREPARING, inside(container.name), seen=container.started)


def _judge_image(container: Container, own: Sequence[Event], events: Sequence[Event]) -> Wait:
    """The waiting reason turns to and fro between the error and the back-off; events keep the cause."""
    causes = [one.message for one in own if one.reason == "Failed" and one.message.startswith(PULL_FAILED)]
    message = " ".join([container.message, *causes[-1:]]).strip()
    reason = classify(container.reason, container.message, *causes[-1:])
    what = short_name(container.image)
    if reason is WaitReason.IMAGE_ACCESS and any(
        one.reason == "FailedToRetrieveImagePullSecret" for one in events
    ):
        what = f"{what}; a pull secret of it does not exist"
    return wait(
        reason,
        inside(what),
        fatal=reason not in HEALS,
        seen=own[0].first if own else None,
        detail=message,
        data={"image": container.image},
    )


def _judge_config(container: Container, own: Sequence[Event], now: datetime) -> Wait:
    """A secret or ConfigMap that was created with the pod may only not be visible yet."""
    failed = next((one for one in own if container.message and container.message in one.message), None)
    old = failed is not None and now - failed.first >= PATIENCE
    match = _MISSING.search(container.message)
    return wait(
        WaitReason.CONFIG_MISSING,
        f": {match['what']}" if match else "",
        fatal=old,
        seen=failed,
        detail=container.message,
    )


def _judge_pull(container: Container, own: Sequence[Event], around: Around) -> Wait | None:
    last = next((one for one in reversed(own) if one.reason in _PULL_EVENTS), None)
    if last is None or last.reason != "Pulling":
        return None
    took, usual = around.now - last.last, around.usual.pull
    slow = usual is not None and took > usual * _SLOW
    known = f", usually {span(usual)}" if usual else ""
    size = inside(gib(around.usual.size)) if around.usual.size else ""
    what = f"{size} for {span(took)}{known}" + ("; the registry may be slow or not answer" if slow else "")
    return wait(
        WaitReason.PULLING,
        what,
        seen=last.last,
        data={"image": container.image, "seconds": round(took.total_seconds()), "slow": slow},
    )


def _judge_setup(pod: Pod, events: Sequence[Event], now: datetime) -> Wait | None:
    """Say what keeps a node from setting up the pod, if the last that was heard is that it could not."""
    if pod.phase == "Running":
        return None
    last = next((one for one in reversed(events) if one.reason in _SETUP_FAILED | _SETUP_DONE), None)
    if last is None or last.reason in _SETUP_DONE:
        return None
    if last.reason == _NETWORK_FAILED:
        return wait(WaitReason.NETWORK_FAILED, seen=last)
    if last.message.startswith(_ELSEWHERE):
        return wait(WaitReason.VOLUME_ELSEWHERE, seen=last)
    if match := _MISSING.search(last.message):
        old = now - last.first >= PATIENCE
        return wait(WaitReason.CONFIG_MISSING, f": {match['what']}", fatal=old, seen=last)
    return wait(WaitReason.VOLUME_FAILED, seen=last)


def _begin(pod: Pod) -> Wait:
    notebook = pod.notebook
    if pod.phase == "Running" and notebook is not None and notebook.state == "running":
        return wait(WaitReason.RUNNING, seen=notebook.started)
    if pod.claims and not pod.holds("PodReadyToStartContainers") and not _has_status(pod):
        return wait(WaitReason.VOLUME_ATTACHING)
    return wait(WaitReason.STARTING)


def _has_status(pod: Pod) -> bool:
    return any(one.state != "waiting" or one.ready for one in pod.containers)
