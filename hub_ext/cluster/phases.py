"""Where the time of one start went.

Phases overlap: while one container's image is pulled another one may already run. Each moment from request
to end is therefore given to one phase only, the one that decides at that moment, and what no evidence covers
stays ``unattributed``; so the parts always add up to the whole.

Evidence and its traps: conditions and container states are to the second, and a condition that flips forgets
its first time (`Milestones` keeps it); events may be dropped or folded; clocks of nodes differ, so that a
negative time is cut to zero and counted; before kubelet 1.36 `PodReadyToStartContainers` was set only after
the pulls (kubernetes/kubernetes#134460).

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from .events import Event
from .nodes import Node
from .pods import Pod
from .pulls import Pull, read_pull

_KEPT: Final = ("PodScheduled", "Initialized", "PodReadyToStartContainers")
_SCALING: Final = frozenset({"TriggeredScaleUp", "Nominated"})
_SANDBOX_KNOWN: Final = (1, 36)


class Phase(StrEnum):
    """A part of a start, in order."""

    REQUEST = "request"
    """From the hub's request until the pod exists: limits, volume claim, the API server."""
    QUEUE = "queue"
    """Held back or waiting for a node with room."""
    SCALE_UP = "scale-up"
    """Waiting for a node that is being added."""
    VOLUME = "volume"
    """Attaching volumes, setting up the sandbox and the network."""
    PULL = "pull"
    INIT = "init"
    START = "start"
    """From the image until the notebook container runs."""
    WARM_UP = "warm-up"
    """From the container until the server answers the hub."""
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestones:
    """First times of what a pod forgets when it flips or restarts."""

    uid: str
    first: Mapping[str, datetime]
    """By condition, and by ``started/<container>``."""


def note(pod: Pod, before: Milestones | None = None) -> Milestones:
    """Add what a pod shows now to what it showed before; another pod of its name begins anew."""
    first = dict(before.first) if before is not None and before.uid == pod.uid else {}
    seen = {one.type: one.since for one in pod.conditions if one.type in _KEPT and one.status}
    seen |= {f"started/{one.name}": one.started for one in pod.containers}
    for key, moment in seen.items():
        if moment is not None:
            first[key] = min(moment, first.get(key, moment))
    return Milestones(uid=pod.uid, first=first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One start, taken apart."""

    total: timedelta
    parts: Mapping[Phase, timedelta]
    """Adds up to `total`; phases that took no time are left out."""
    pulls: tuple[Pull, ...]
    warm: bool | None
    """Whether the notebook's image was on the node; None if that is not known."""
    skewed: int
    """Moments that lay before what they follow: clocks differ by that much."""


@dataclass(frozen=True, slots=True)
class _Interval:
    phase: Phase
    begin: datetime
    end: datetime


_DECIDES: Final = (
    Phase.PULL,
    Phase.INIT,
    Phase.SCALE_UP,
    Phase.VOLUME,
    Phase.QUEUE,
    Phase.REQUEST,
    Phase.START,
    Phase.WARM_UP,
)
"""Which phase a moment is given to if several claim it: the one that must end before anything goes on."""


def split(
    pod: Pod,
    events: Sequence[Event],
    *,
    requested: datetime,
    ended: datetime,
    milestones: Milestones | None = None,
    node: Node | None = None,
) -> Split:
    """Take one start apart.

    Parameters
    ----------
    events
        Of the pod, oldest first.
    requested, ended
        By the hub's clock: when it was asked for, and when the server answered or the start was given up.
    """
    marks = note(pod, milestones).first
    pulls = tuple(read_pull(one.name, events) for one in pod.containers)
    found = list(_intervals(pod, events, marks, pulls, node))
    found = [_Interval(Phase.REQUEST, requested, pod.created), *found]
    notebook = pod.notebook
    started = marks.get(f"started/{notebook.name}") if notebook else None
    if started is not None:
        found.append(_Interval(Phase.WARM_UP, started, ended))
    skewed = sum(1 for one in found if one.end < one.begin - timedelta(seconds=1))
    main = next((one for one in pulls if notebook and one.container == notebook.name), None)
    return Split(
        total=ended - requested,
        parts=_share(found, requested, ended),
        pulls=pulls,
        warm=main.warm if main else None,
        skewed=skewed,
    )


def _intervals(
    pod: Pod,
    events: Sequence[Event],
    marks: Mapping[str, datetime],
    pulls: Iterable[Pull],
    node: Node | None,
) -> Iterator[_Interval]:
    scheduled = marks.get("PodScheduled")
    notebook = pod.notebook
    started = marks.get(f"started/{notebook.name}") if notebook else None
    if scheduled is not None:
        yield _Interval(Phase.QUEUE, pod.created, scheduled)
        if (growing := _scale_up(pod, events, node)) is not None:
            yield _Interval(Phase.SCALE_UP, growing, scheduled)
        if (ready := _set_up(events, marks, node)) is not None:
            yield _Interval(Phase.VOLUME, scheduled, ready)
    last = scheduled
    for pull in pulls:
        end = pull.ended or marks.get(f"started/{pull.container}")
        if pull.begun is not None and end is not None:
            yield _Interval(Phase.PULL, pull.begun, end)
        last = max(filter(None, (last, end if pull.ended else None)), default=None)
    inits = [one for one in pod.containers if one.init and not one.sidecar]
    begun = min((m for one in inits if (m := marks.get(f"started/{one.name}"))), default=None)
    finished = marks.get("Initialized") or max((one.finished for one in inits if one.finished), default=None)
    if begun is not None and finished is not None:
        yield _Interval(Phase.INIT, begun, finished)
        last = max(filter(None, (last, finished)))
    if started is not None and last is not None:
        yield _Interval(Phase.START, last, started)


def _scale_up(pod: Pod, events: Sequence[Event], node: Node | None) -> datetime | None:
    """Say since when a node was being added; autoscalers do not tell it to each pod that they help."""
    told = next((one.first for one in events if one.reason in _SCALING), None)
    if told is not None:
        return told
    if node is not None and node.created is not None and node.created > pod.created:
        return node.created
    return None


def _set_up(events: Sequence[Event], marks: Mapping[str, datetime], node: Node | None) -> datetime | None:
    """Say when volumes and sandbox were ready, from evidence that means it."""
    attached = [one.last for one in events if one.reason == "SuccessfulAttachVolume"]
    sandbox = marks.get("PodReadyToStartContainers") if _tells_sandbox(node) else None
    pulling = next((one.first for one in events if one.reason in {"Pulling", "Pulled"}), None)
    return sandbox or pulling or max(attached, default=None)


def _tells_sandbox(node: Node | None) -> bool:
    match = re.match(r"v?(\d+)\.(\d+)", node.kubelet) if node is not None else None
    return match is not None and (int(match[1]), int(match[2])) >= _SANDBOX_KNOWN


def _share(found: Sequence[_Interval], begin: datetime, end: datetime) -> dict[Phase, timedelta]:
    """Give each moment between begin and end to one phase."""
    edges = {begin, end}
    edges |= {edge for one in found for edge in (one.begin, one.end) if begin < edge < end}
    ordered = sorted(edges)
    parts: dict[Phase, timedelta] = {}
    for left, right in pairwise(ordered):
        active = {one.phase for one in found if one.begin <= left and one.end >= right}
        phase = next((one for one in _DECIDES if one in active), Phase.UNATTRIBUTED)
        parts[phase] = parts.get(phase, timedelta(0)) + (right - left)
    return {phase: parts[phase] for phase in Phase if phase in parts}
