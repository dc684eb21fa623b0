"""Pods that a node refused or ended: they are over, and no container says why.

Each message is read from its beginning: containers, volumes and resources in it are named as people liked.

Sources: kubelet 1.32 to 1.36 (`lifecycle/predicate.go`, `cm/devicemanager/manager.go`,
`cm/admission/errors.go`, `eviction/helpers.go`, `nodeshutdown`); NVIDIA device plugin v0.18 (`internal/rm`);
seen on real nodes.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from typing import Final

from ..quota.words import named, too_little
from .nature import wait
from .pods import NOTEBOOK, Container, Pod
from .texts import inside
from .waits import Wait, WaitReason

_DEVICES: Final = (
    (
        re.compile(
            r"(?:rpc error: code = \w+ desc = )?(?:invalid allocation request for \"[^\"]*\": )?"
            r"(?:invalid request: |request (?:for '[^']*' )?too large[:,] )?"
            r"maximum (?:request size )?for shared resources is \d+(?:; found (?P<asked>\d+))?"
        ),
        WaitReason.SHARE_REFUSED,
    ),
    (
        re.compile(r"(?:no healthy devices present|previously allocated devices are no longer healthy); "),
        WaitReason.DEVICE_UNHEALTHY,
    ),
    (re.compile(r"requested number of devices unavailable for "), WaitReason.DEVICE_TAKEN),
)
"""What the device manager says, or the device plugin through it, behind `_ALLOCATING`."""
_ALLOCATING: Final = re.compile(r"(?:Pod was rejected: )?(?:Allocate failed due to )?")
_LOST: Final = frozenset({"NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
_ENDED: Final = {
    "Evicted": WaitReason.EVICTED,
    "Preempting": WaitReason.PREEMPTED,
    "Preempted": WaitReason.PREEMPTED,
}
_OUT_OF: Final = "OutOf"
"""What the reason begins with where something is used up; the rest names it."""

_SHORT: Final = re.compile(r"The node was low on resource: (?P<resource>[a-z-]+)\.")
_OVER: Final = re.compile(
    r"Pod ephemeral local storage usage exceeds |Usage of EmptyDir volume \"|"
    r"Container \S+ exceeded its local ephemeral storage limit "
)
"""The pod itself used more disk space than it may, not the node as a whole."""


def judge_refused(pod: Pod) -> Wait | None:
    """Say why a node refused a pod, or ended it as a whole; None if that did not happen."""
    if pod.phase != "Failed" or not pod.reason:
        return None
    reason, what = _reason(pod)
    return wait(
        reason, what, fatal=True, detail=f"{pod.reason}: {pod.message}".strip(": "), data={"node": pod.node}
    )


def _reason(pod: Pod) -> tuple[WaitReason, str]:
    if pod.reason == "UnexpectedAdmissionError":
        return _device(pod.message)
    if pod.reason.startswith(_OUT_OF):
        short = pod.reason.removeprefix(_OUT_OF)
        full = "it holds as many pods as it may" if short == "pods" else f"{too_little([short])} left"
        return WaitReason.NODE_REFUSED, f": {full}"
    if pod.reason in _LOST:
        return WaitReason.NODE_LOST, ""
    if pod.reason in _ENDED:
        why = _lacking(pod.message)
        return _ENDED[pod.reason], f": {why}" if why else ""
    return WaitReason.NODE_REFUSED, ""


def _lacking(message: str) -> str:
    if _OVER.match(message):
        return "the workspace used more disk space than it may"
    short = _SHORT.match(message)
    return f"the node ran short of {named(short['resource'])}" if short else ""


def _device(message: str) -> tuple[WaitReason, str]:
    said = _ALLOCATING.sub("", message, count=1)
    for pattern, found in _DEVICES:
        if match := pattern.match(said):
            asked = match.groupdict().get("asked")
            return found, inside(asked) if asked else ""
    return WaitReason.NODE_REFUSED, ""


def judge_crash(container: Container) -> Wait | None:
    """Say why a container that should run has ended; None if it has not."""
    ended = container.state == "terminated"
    looping = container.reason == "CrashLoopBackOff"
    if not ended and not looping:
        return None
    if not looping and container.exit_code == 0 and (container.init or container.name != NOTEBOOK):
        return None
    why = container.reason if ended else container.last_reason
    code = container.exit_code if ended else container.last_exit_code
    reason = WaitReason.OUT_OF_MEMORY if why == "OOMKilled" else WaitReason.CRASHED
    place = "" if not container.init else f" in {container.name}"
    known = inside(f"exit code {code}{place}" if code is not None else "")
    # The kubelet starts it again (`restartPolicy: OnFailure`): one end may be bad luck, a loop is not.
    fatal = looping or (ended and container.restarts > 0) or reason is WaitReason.OUT_OF_MEMORY
    return wait(reason, known, fatal=fatal, seen=container.finished, detail=container.message)
