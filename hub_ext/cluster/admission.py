"""Pods that a node refused or ended: they are over, and no container says why.

Sources: kubelet `lifecycle/predicate.go`, device manager and NVIDIA device plugin v0.18 messages as seen on
real nodes, kubelet eviction and graceful shutdown.

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
        re.compile(r"maximum request size for shared resources|request too large.*shared"),
        WaitReason.SHARE_REFUSED,
    ),
    (re.compile(r"unhealthy devices"), WaitReason.DEVICE_UNHEALTHY),
    (re.compile(r"number of devices unavailable|already allocated"), WaitReason.DEVICE_TAKEN),
)
_LOST: Final = frozenset({"NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
_ENDED: Final = {
    "Evicted": WaitReason.EVICTED,
    "Preempting": WaitReason.PREEMPTED,
    "Preempted": WaitReason.PREEMPTED,
}
_ASKED: Final = re.compile(r"found (?P<asked>\d+)")
_OUT_OF: Final = "OutOf"
"""What the reason begins with where something is used up; the rest names it."""

_SHORT: Final = re.compile(r"low on resource: (?P<resource>[^\s.,]+)")
_OVER: Final = re.compile(
    r"(?:storage usage exceeds|Usage of EmptyDir volume|exceeded its local ephemeral storage limit)"
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
    if _OVER.search(message):
        return "the workspace used more disk space than it may"
    short = _SHORT.search(message)
    return f"the node ran short of {named(short['resource'])}" if short else ""


def _device(message: str) -> tuple[WaitReason, str]:
    for pattern, found in _DEVICES:
        if pattern.search(message):
            asked = _ASKED.search(message) if found is WaitReason.SHARE_REFUSED else None
            return found, inside(asked["asked"]) if asked else ""
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
