"""How a run stands, in one word, one reason and one sentence, the same for Job, TrainJob and RayJob.

The first rule that applies wins, from the end of a run's life to its beginning.

Sources: batch/v1 JobStatus; trainer.kubeflow.org/v1alpha1 conditions; ray.io/v1 `jobDeploymentStatus`;
Kueue v0.19 and v0.20 conditions of Workload.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hub_ext.cluster.events import Event
from hub_ext.cluster.pods import Container, Pod
from hub_ext.cluster.times import read_time
from hub_ext.cluster.waiting import explain
from hub_ext.cluster.waits import Around

from . import texts
from .ids import ANNOTATION_CANCELED, ANNOTATION_STUCK
from .reasons import RunReason
from .workload import QueueState, read_queue_state


class Phase(StrEnum):
    """Where a run is."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def has_ended(self) -> bool:
        return self in {Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What to tell about a run. `text` is plain text: escape it in HTML."""

    phase: Phase
    reason: str
    """A `RunReason`, or a `hub_ext.cluster.waits.WaitReason` while it starts."""
    text: str
    since: datetime | None = None
    detail: str = ""
    """What the cluster said, for those who know it."""
    started: datetime | None = None
    ended: datetime | None = None
    attempts: int = 0
    """Pods that have run, or run now."""
    preemptions: int = 0
    position: int | None = None
    """Runs ahead in the queue; None where that is not known."""

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        return {
            "phase": self.phase.value,
            "reason": self.reason,
            "text": self.text,
            "detail": self.detail,
            "since": _iso(self.since),
            "started": _iso(self.started),
            "ended": _iso(self.ended),
            "attempts": self.attempts,
            "preemptions": self.preemptions,
            "position": self.position,
        }


def _iso(time: datetime | None) -> str | None:
    return time.isoformat(timespec="seconds") if time else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What is known of a run on the cluster at one moment."""

    obj: Mapping[str, Any]
    """Job, TrainJob or RayJob in API spelling, with its `kind`."""
    now: datetime
    workload: Mapping[str, Any] | None = None
    """Kueue's Workload in API spelling; None if there is none yet."""
    pods: tuple[Pod, ...] = ()
    """Oldest first."""
    events: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    """Of each pod and of the object itself, by uid, oldest first."""
    position: int | None = None
    last_word: Mapping[str, Any] | None = None
    """What the runner said when it ended, from a pod or from the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a rule says; the rest of a `Status` is counted."""

    phase: Phase
    reason: str
    what: str = ""
    """Detail for the sentence."""
    text: str = ""
    """Where the sentence comes from elsewhere."""
    since: datetime | None = None
    ended: datetime | None = None
    detail: str = ""


def judge(seen: Observed) -> Status:
    """Say how a run stands."""
    queue = read_queue_state(seen.workload)
    found = _canceled(seen) or _ended(seen, queue) or _given_up(seen, queue) or _under_way(seen, queue)
    position = seen.position if found.phase is Phase.QUEUED else None
    starts = [time for pod in seen.pods if (time := _started(pod))]
    return Status(
        phase=found.phase,
        reason=str(found.reason),
        text=found.text or texts.sentence(RunReason(found.reason), found.what, position=position),
        since=found.since,
        detail=found.detail[:1500],
        started=min(starts, default=None) or read_time((seen.obj.get("status") or {}).get("startTime")),
        ended=found.ended,
        attempts=len(starts),
        preemptions=queue.preemptions,
        position=position,
    )


def _canceled(seen: Observed) -> _Found | None:
    notes = seen.obj["metadata"].get("annotations") or {}
    canceled = read_time(notes.get(ANNOTATION_CANCELED))
    if canceled is None:
        return None
    return _Found(phase=Phase.CANCELED, reason=RunReason.CANCELED, since=canceled, ended=canceled)


def _ended(seen: Observed, queue: QueueState) -> _Found | None:
    end = read_end(seen.obj)
    if end is None:
        return None
    if end.succeeded:
        lost = _lost(seen)
        reason = RunReason.SUCCEEDED if lost is None else RunReason.RESULTS_NOT_KEPT
        return _Found(phase=Phase.SUCCEEDED, reason=reason, what=lost or "", since=end.at, ended=end.at)
    reason, what, detail = _cause(seen, queue, end)
    return _Found(
        phase=Phase.FAILED, reason=reason, what=what, since=end.at, ended=end.at, detail=detail or end.detail
    )


def _lost(seen: Observed) -> str | None:
    """Say which results could not be kept: as its pod says, or the store; None if all were."""
    messages = (container.message for pod in seen.pods for container in pod.containers)
    words = [*map(texts.read_word, messages), texts.read_said(seen.last_word or {})]
    return next((word[1] for word in words if word and word[0] is RunReason.RESULTS_NOT_KEPT), None)


def _given_up(seen: Observed, queue: QueueState) -> _Found | None:
    """Judge what was taken out of its queue: by this service, by Kueue or by an admin."""
    notes = seen.obj["metadata"].get("annotations") or {}
    ended = queue.since or seen.now
    if stuck := notes.get(ANNOTATION_STUCK):
        return _Found(phase=Phase.FAILED, reason=RunReason.STUCK, what=stuck, ended=ended)
    if not queue.deactivated:
        return None
    reason = queue.reason or RunReason.DEACTIVATED
    return _Found(phase=Phase.FAILED, reason=reason, detail=queue.detail, ended=ended)


def _under_way(seen: Observed, queue: QueueState) -> _Found:
    if not queue.admitted:
        reason = queue.reason or RunReason.QUEUED
        return _Found(phase=Phase.QUEUED, reason=reason, since=queue.since, detail=queue.detail)
    running = [pod for pod in seen.pods if pod.phase == "Running" and pod.deleted is None]
    if running and all(one.state == "running" for one in running[-1].containers if not one.init):
        return _Found(phase=Phase.RUNNING, reason=RunReason.RUNNING, since=_started(running[-1]))
    live = next((pod for pod in reversed(seen.pods) if pod.phase in {"Pending", "Running"}), None)
    if live is None:
        blocked = _blocked(seen)
        reason = RunReason.NO_PODS if blocked else RunReason.ADMITTED
        return _Found(phase=Phase.STARTING, reason=reason, since=queue.since, detail=blocked)
    wait = explain(live, seen.events.get(live.uid, ()), Around(now=seen.now))
    return _Found(
        phase=Phase.STARTING,
        reason=wait.reason.value,
        text=texts.of_run(wait.text),
        since=wait.since or queue.since,
        detail=wait.detail,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a run as its own object tells it."""

    succeeded: bool
    at: datetime | None
    reason: str = ""
    message: str = ""

    @property
    def detail(self) -> str:
        return " ".join(filter(None, (self.reason, self.message)))


def read_end(obj: Mapping[str, Any]) -> End | None:
    """Read whether a Job, TrainJob or RayJob has ended; None while it has not."""
    status = obj.get("status") or {}
    if obj["kind"] == "RayJob":
        return _ray_end(status)
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in {"Complete", "Failed"}:
            return End(
                succeeded=condition["type"] == "Complete",
                at=read_time(condition.get("lastTransitionTime")),
                reason=condition.get("reason") or "",
                message=condition.get("message") or "",
            )
    return None


def _ray_end(status: Mapping[str, Any]) -> End | None:
    deployment = status.get("jobDeploymentStatus")
    if deployment not in {"Complete", "Failed", "ValidationFailed"}:
        return None
    return End(
        succeeded=deployment == "Complete" and status.get("jobStatus") == "SUCCEEDED",
        at=read_time(status.get("endTime")),
        reason=status.get("reason")
        or (deployment if deployment != "Complete" else status.get("jobStatus", "")),
        message=status.get("message") or "",
    )


_DEADLINES = {"DeadlineExceeded", "MaximumExecutionTimeExceeded"}


def _cause(seen: Observed, queue: QueueState, end: End) -> tuple[RunReason, str, str]:
    """Name why it failed: a deadline, or how the last pod ended, or what the controller says."""
    if end.reason in _DEADLINES or queue.reason is RunReason.DEADLINE:
        return RunReason.DEADLINE, "", ""
    if end.reason == "ValidationFailed":
        return RunReason.REFUSED, "", ""
    causes = [found for pod in reversed(seen.pods) if (found := _pod_cause(pod))]
    said = texts.read_said(seen.last_word) if seen.last_word else None
    # Of several pods the one that speaks may have done its part while another failed.
    if said and said[0] not in {RunReason.SUCCEEDED, RunReason.RESULTS_NOT_KEPT}:
        causes.append(said)
    if seen.obj["kind"] == "TrainJob":  # where one of its pods fails, the others are ended
        causes.sort(key=lambda cause: cause[0] is RunReason.ENDED_BY_CLUSTER)
    return causes[0] if causes else (RunReason.FAILED, "", "")


def _pod_cause(pod: Pod) -> tuple[RunReason, str, str] | None:
    if pod.reason == "Evicted":
        return RunReason.EVICTED, "", pod.message
    for container in pod.containers:
        if container.state == "terminated" and container.reason == "OOMKilled":
            return RunReason.OUT_OF_MEMORY, "", container.message
    ended = next((one for one in pod.containers if _has_failed(one)), None)
    if ended is None:
        return None
    if found := texts.read_word(ended.message):
        return found
    return RunReason.PROGRAM_FAILED, f"exit status {ended.exit_code}", ended.message


def _has_failed(container: Container) -> bool:
    return container.state == "terminated" and container.exit_code not in {0, None}


def _blocked(seen: Observed) -> str:
    """Give what the controller says about pods that it could not create."""
    own = seen.events.get(seen.obj["metadata"].get("uid", ""), ())
    return next((event.message for event in reversed(own) if event.reason == "FailedCreate"), "")


def _started(pod: Pod) -> datetime | None:
    times = [one.started for one in pod.containers if one.started and not one.init]
    return min(times, default=None)
