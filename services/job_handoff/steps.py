"""What has happened to a run, as a time line in plain words.

Made from conditions, pods and the record; events of the cluster are gone after an hour and only add detail.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hub_ext.cluster.events import Event
from hub_ext.cluster.pods import Pod, read_conditions
from hub_ext.cluster.times import read_time

from .record import Record
from .status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One entry. `text` is plain text: escape it in HTML."""

    at: datetime
    text: str
    kind: str = ""
    """``good``, ``warn`` or ``bad``; empty for neither."""

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        return {"at": self.at.isoformat(timespec="seconds"), "text": self.text, "kind": self.kind}


def steps_of(
    record: Record,
    status: Status,
    *,
    workload: Mapping[str, Any] | None = None,
    pods: Sequence[Pod] = (),
    events: Mapping[str, Sequence[Event]] | None = None,
) -> tuple[Step, ...]:
    """Tell the story of a run, from the beginning.

    Parameters
    ----------
    events
        None for a run that the cluster does not have any more.
    """
    steps: list[Step] = []
    submitted = read_time(record.submitted)
    if submitted is not None:
        steps.append(Step(at=submitted, text="Submitted"))
    if events is not None:
        steps += _from_workload(workload)
        steps += (step for pod in pods for step in _from_pod(pod))
        steps += _from_events(events)
    elif status.started is not None:
        steps.append(Step(at=status.started, text="Started"))
    if status.phase.has_ended and status.ended is not None:
        kind = "good" if status.phase.value == "succeeded" else "bad"
        steps.append(Step(at=status.ended, text=status.text, kind=kind))
    return tuple(sorted(dict.fromkeys(steps), key=lambda step: step.at))


_CONDITIONS = {
    "QuotaReserved": ("Room reserved in the queue", ""),
    "Admitted": ("Its turn: admitted", ""),
    "Preempted": ("Preempted: something more urgent needed the room", "warn"),
    "Requeued": ("Back in the queue", ""),
}


def _from_workload(workload: Mapping[str, Any] | None) -> Iterator[Step]:
    if workload is None:
        return
    created = read_time(workload["metadata"].get("creationTimestamp"))
    if created is not None:
        yield Step(at=created, text="Waiting in the queue")
    for condition in read_conditions(workload.get("status") or {}):
        known = _CONDITIONS.get(condition.type)
        if known is None or condition.since is None:
            continue
        # A preemption stays visible when the run is back; the others are true only now.
        if condition.status or (condition.type == "Preempted" and condition.reason):
            yield Step(at=condition.since, text=known[0], kind=known[1])


def _from_pod(pod: Pod) -> Iterator[Step]:
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status and scheduled.since is not None:
        yield Step(at=scheduled.since, text=f"Placed on the node {pod.node}")
    for container in pod.containers:
        if container.init:
            continue
        if container.started is not None:
            yield Step(at=container.started, text="Program started")
        if container.finished is not None and container.exit_code not in {0, None}:
            why = "out of memory" if container.reason == "OOMKilled" else f"exit status {container.exit_code}"
            yield Step(at=container.finished, text=f"Program ended: {why}", kind="warn")
    if pod.deleted is not None:
        yield Step(at=pod.deleted, text="Pod is being ended", kind="warn")


_SPOKEN = {"Pulling": "Fetching the image", "Pulled": "Image is there"}


def _from_events(events: Mapping[str, Sequence[Event]]) -> Iterator[Step]:
    for of_one in events.values():
        for event in of_one:
            if event.reason in _SPOKEN:
                yield Step(at=event.last, text=_SPOKEN[event.reason])
            elif event.warning:
                yield Step(at=event.last, text=f"{event.reason}: {event.message[:200]}", kind="warn")
