"""One run at one moment, as everything that shows or judges it reads it.

Pure: `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from hub_ext.cluster.events import Event
from hub_ext.cluster.pods import QUEUE_LABEL, Pod
from hub_ext.cluster.times import read_time
from hub_ext.errors import BadValueError

from .ids import ANNOTATION_RECORD
from .reasons import RunReason
from .record import Record, parse_record
from .schedules import Coming
from .status import Phase, Status
from .steps import Step
from .texts import sentence

_SUBMITTER: Final = "ray-job-submitter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What belongs to a run beside its object."""

    workload: Mapping[str, Any] | None
    pods: tuple[Pod, ...]
    """Oldest first."""
    events: Mapping[str, tuple[Event, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run at one moment."""

    record: Record
    status: Status
    obj: Mapping[str, Any] | None = None
    """None for one that is only in the store."""
    around: Around | None = None
    steps: tuple[Step, ...] = ()
    coming: Coming | None = None
    """Next run of a schedule; None for a paused one, and for what is none."""
    progress: Mapping[str, Any] | None = None
    """What the runner says: `cells`, `done`, `checkpoint` (Unix time)."""

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        record = self.record
        return {
            "id": record.id,
            "title": record.title,
            "user": record.user,
            "team": record.team,
            "kind": record.kind,
            "profile": record.profile,
            "image": record.image,
            "queue": record.queue,
            "submitted": record.submitted,
            "request": dict(record.request),
            "schedule": record.is_schedule,
            "next": self.coming.at.isoformat() if self.coming else None,
            "status": self.status.as_dict(),
            "steps": [step.as_dict() for step in self.steps],
            "progress": dict(self.progress) if self.progress else None,
        }


def record_from(obj: Mapping[str, Any]) -> Record | None:
    """Read the record on a run's object; None if this service did not make it.

    A Job of a schedule carries the record of the schedule; its own name and time take their place.
    """
    metadata = obj["metadata"]
    try:
        record = parse_record((metadata.get("annotations") or {}).get(ANNOTATION_RECORD, ""))
    except BadValueError:
        return None
    if record.id == metadata["name"]:
        return record
    request = {key: value for key, value in record.request.items() if key != "schedule"}
    return Record(
        **{
            **{name: getattr(record, name) for name in Record.__dataclass_fields__},
            "id": metadata["name"],
            "lineage": metadata["name"] if record.lineage == record.id else record.lineage,
            "submitted": metadata["creationTimestamp"],
            "request": request,
        }
    )


def status_of(record: Record) -> Status:
    """Give the status of a run that was filed, as it ended."""
    ended = record.ended or {}
    try:
        phase = Phase(ended.get("phase", ""))
    except ValueError as error:
        raise BadValueError(f"the record of {record.id} does not say how it ended") from error
    return Status(
        phase=phase,
        reason=str(ended.get("reason", "")),
        text=str(ended.get("text") or sentence(RunReason.FAILED)),
        detail=str(ended.get("detail", "")),
        since=read_time(ended.get("since")),
        started=read_time(ended.get("started")),
        ended=read_time(ended.get("ended")),
        attempts=int(ended.get("attempts") or 0),
        preemptions=int(ended.get("preemptions") or 0),
    )


def spent(status: Status, now: datetime) -> timedelta:
    """Say how long a run has run, or ran."""
    if status.started is None:
        return timedelta(0)
    return max(timedelta(0), (status.ended or now) - status.started)


def spokesman(obj: Mapping[str, Any], pods: Iterable[Pod]) -> Pod | None:
    """Give the pod whose log is the run's: the newest, the first node, or the one that watches a Ray job."""
    found = list(pods)
    if obj["kind"] == "RayJob":
        handing = [pod for pod in found if any(one.name == _SUBMITTER for one in pod.containers)]
        return handing[-1] if handing else (found[-1] if found else None)
    if obj["kind"] == "TrainJob":
        first = [pod for pod in found if "-node-0-0" in pod.name]
        return first[-1] if first else (found[-1] if found else None)
    return found[-1] if found else None


def queue_of(obj: Mapping[str, Any]) -> str:
    """Give the LocalQueue of a run."""
    labels = obj["metadata"].get("labels") or {}
    name: str = labels.get(QUEUE_LABEL, "")
    return name
