"""What the pages show, worked out before any template sees it. Every text here is plain text.

Pure: `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from hub_ext.cluster.texts import span
from hub_ext.cluster.times import read_time
from hub_ext.units import gib

from .cost import cost_of
from .reasons import RunReason
from .seen import Seen, spent
from .status import Phase, Status

TONES: Final = {
    Phase.QUEUED: "soft",
    Phase.STARTING: "warn",
    Phase.RUNNING: "accent",
    Phase.SUCCEEDED: "good",
    Phase.FAILED: "bad",
    Phase.CANCELED: "soft",
}
WORDS: Final = {
    Phase.QUEUED: "Waiting",
    Phase.STARTING: "Starting",
    Phase.RUNNING: "Running",
    Phase.SUCCEEDED: "Done",
    Phase.FAILED: "Failed",
    Phase.CANCELED: "Canceled",
}
_LONG: Final = timedelta(days=2)
"""From here on it is told in days."""
KINDS: Final = {"job": "Job", "trainjob": "Training on several nodes", "rayjob": "Ray"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStart:
    """When a schedule starts its next run; the page adds the time in the viewer's own zone."""

    at: str
    """ISO 8601."""
    zone: str
    """Of the schedule."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run in a list."""

    id: str
    title: str
    user: str
    profile: str
    kind: str
    word: str
    tone: str
    text: str
    submitted: str
    lasted: str
    cost: str
    has_ended: bool
    next_start: NextStart | None = None
    """Of a schedule that is neither paused nor due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A name and what it is."""

    name: str
    value: str
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry of the time line."""

    at: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The page of one run."""

    row: Row
    detail: str
    lines: tuple[Line, ...]
    facts: tuple[Fact, ...]
    done: int = 0
    cells: int = 0
    checkpoint: str = ""
    files: tuple[tuple[str, str], ...] = field(default=())
    log: str = ""
    is_schedule: bool = False
    paused: bool = False


def row_of(seen: Seen, now: datetime) -> Row:
    """Give a run as a row."""
    record, status = seen.record, seen.status
    lasted = spent(status, now)
    cost = cost_of(record, lasted)
    schedule = seen.obj is not None and seen.obj["kind"] == "CronJob"
    return Row(
        id=record.id,
        title=record.title,
        user=record.user,
        profile=record.profile,
        kind="Schedule" if schedule else KINDS.get(record.kind, record.kind),
        word=_word(status) if schedule else WORDS[status.phase],
        tone=TONES[status.phase],
        text=status.text,
        submitted=_moment(read_time(record.submitted), now),
        lasted=span(lasted) if status.started else "",
        cost=cost["text"] if cost and status.started else "",
        has_ended=status.phase.has_ended,
        next_start=_next_start(seen, now),
    )


def _word(status: Status) -> str:
    return "Paused" if status.reason == RunReason.HELD else "Schedule"


def _next_start(seen: Seen, now: datetime) -> NextStart | None:
    found = seen.coming
    if found is None or found.due:
        return None
    left = found.at - now
    text = f"The next one in {span(left) if left < _LONG else f'{round(left / timedelta(days=1))} days'}"
    return NextStart(at=found.at.isoformat(), zone=found.zone, text=text)


def view_of(seen: Seen, now: datetime, *, files: Mapping[str, int], log: str) -> RunView:
    """Give a run as its page shows it."""
    progress: Mapping[str, Any] = seen.progress or {}
    cells, done = _count(progress.get("cells")), _count(progress.get("done"))
    schedule = seen.obj is not None and seen.obj["kind"] == "CronJob"
    return RunView(
        row=row_of(seen, now),
        detail=seen.status.detail,
        lines=tuple(Line(at=_moment(s.at, now), text=s.text, kind=s.kind) for s in seen.steps),
        facts=tuple(_facts(seen)),
        done=min(done, cells),
        cells=cells,
        checkpoint=_checkpoint(progress, seen.status, now),
        files=tuple((name, gib(size)) for name, size in files.items()),
        log=log,
        is_schedule=schedule,
        paused=bool(schedule and seen.obj and seen.obj["spec"].get("suspend")),
    )


def _facts(seen: Seen) -> list[Fact]:
    record, request = seen.record, seen.record.request
    entry, source = request.get("entry") or {}, request.get("source") or {}
    arguments = entry.get("arguments") or ()
    parameters = entry.get("parameters") or {}
    found = [
        Fact(name="Runs", value=" ".join([str(entry.get("path", "")), *map(str, arguments)]), code=True),
        *(Fact(name=f"Parameter {key}", value=repr(value), code=True) for key, value in parameters.items()),
        Fact(name="Profile", value=record.profile),
        Fact(name="Pods", value=str(record.nodes)) if record.nodes > 1 else None,
        Fact(name="Team", value=record.team),
        Fact(name="Priority", value=str(request.get("priority") or "")),
        Fact(name="Image", value=record.image, code=True),
        Fact(name="Source", value=_source(source), code=True),
        Fact(name="Schedule", value=_schedule(request.get("schedule"))),
        Fact(name="Attempts", value=str(seen.status.attempts) if seen.status.attempts > 1 else ""),
        Fact(name="Preempted", value=f"{seen.status.preemptions} times" if seen.status.preemptions else ""),
    ]
    return [fact for fact in found if fact is not None and fact.value]


def _source(source: Mapping[str, Any]) -> str:
    match source.get("type"):
        case "git":
            return f"{source.get('url')} at {str(source.get('commit'))[:12]}"
        case "home":
            return f"home/{source.get('folder') or ''}"
        case _:
            return f"snapshot {str(source.get('sha256'))[:12]}"


def _schedule(schedule: Mapping[str, Any] | None) -> str:
    if not schedule:
        return ""
    return f"{schedule.get('cron')} ({schedule.get('timeZone') or schedule.get('time_zone')})"


def _checkpoint(progress: Mapping[str, Any], status: Status, now: datetime) -> str:
    """Say how old the last checkpoint is: as much would be lost by an end at this moment."""
    made = progress.get("checkpoint")
    if not isinstance(made, int | float) or status.phase.has_ended:
        return ""
    age = timedelta(seconds=max(0.0, now.timestamp() - made))
    return f"Last checkpoint {span(age)} ago: as much would be lost if it ended now."


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _moment(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    today = moment.date() == now.date()
    return moment.strftime("%H:%M:%S UTC" if today else "%Y-%m-%d %H:%M UTC")


def entries_of(files: Sequence[str]) -> tuple[str, ...]:
    """Name the files that can be run, notebooks first."""
    runnable = [name for name in files if name.endswith((".ipynb", ".py", ".sh"))]
    return tuple(sorted(runnable, key=lambda name: (not name.endswith(".ipynb"), name.count("/"), name)))
