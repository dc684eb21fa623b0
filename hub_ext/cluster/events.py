"""Events, by the object that they are about.

Kubernetes writes two forms: the kubelet and old controllers fill `firstTimestamp`, `lastTimestamp` and
`count`, to the second; the scheduler and newer ones fill `eventTime` and `series`, to the microsecond. Both
become one. The API server keeps events for an hour, repeated ones are folded into one with a count, and
some are dropped by a spam filter: absence proves nothing.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from .times import read_time

KINDS: Final = frozenset({"Pod", "PersistentVolumeClaim", "Workload", "Job", "TrainJob", "RayJob"})
"""Kinds of objects whose events explain a wait."""
PER_OBJECT: Final = 60
"""Events kept for one object; one start makes about ten."""
OBJECTS: Final = 20_000
"""Objects kept, those with the latest events; a namespace of 3,000 workspaces needs a few thousand."""

_CONTAINER: Final = re.compile(r"spec\.(?:init|ephemeral)?[cC]ontainers\{(?P<name>[^}]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to an object, once or several times."""

    uid: str
    """Of the event itself; it stays when the count goes up."""
    object_uid: str
    object_name: str
    namespace: str
    kind: str
    reason: str
    message: str
    warning: bool
    first: datetime
    last: datetime
    count: int = 1
    container: str = ""
    """The container it is about, if it is about one."""
    source: str = ""
    """Component that reports it."""
    arrived: datetime
    """When it was first seen here; orders the events of one second."""
    version: int = 0
    """Resource version; orders what arrived in one list."""


def read_event(event: Mapping[str, Any], arrived: datetime) -> Event | None:
    """Read an Event of `v1` or `events.k8s.io/v1`; None for objects that explain no wait."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    if about.get("kind") not in KINDS or not about.get("uid"):
        return None
    metadata, series = event["metadata"], event.get("series") or {}
    exact = read_time(event.get("eventTime"))
    first = exact or read_time(event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp"))
    last = read_time(
        series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    )
    first = first or last or read_time(metadata.get("creationTimestamp")) or arrived
    match = _CONTAINER.match(about.get("fieldPath") or "")
    return Event(
        uid=metadata["uid"],
        object_uid=about["uid"],
        object_name=about.get("name", ""),
        namespace=about.get("namespace") or metadata.get("namespace", ""),
        kind=about["kind"],
        reason=event.get("reason") or "",
        message=event.get("message") or event.get("note") or "",
        warning=event.get("type") == "Warning",
        first=first,
        last=max(last or first, first),
        count=series.get("count") or event.get("count") or event.get("deprecatedCount") or 1,
        container=match["name"] if match else "",
        source=event.get("reportingComponent")
        or event.get("reportingController")
        or (event.get("source") or {}).get("component")
        or "",
        arrived=arrived,
        version=int(metadata.get("resourceVersion") or 0),
    )


class EventIndex:
    """The events of each object in the order they happened, bounded in both directions.

    Asking costs as much as the object has events, however many there are of others. An event stays after the
    API server forgets it: what it explained is still asked for.
    """

    def __init__(self, *, per_object: int = PER_OBJECT, objects: int = OBJECTS) -> None:
        self._per_object, self._objects = per_object, objects
        self._by_object: OrderedDict[str, dict[str, Event]] = OrderedDict()

    def put(self, event: Event) -> None:
        """Add an event, or what has become of one that is known."""
        events = self._by_object.setdefault(event.object_uid, {})
        known = events.get(event.uid)
        events[event.uid] = event if known is None else replace(event, arrived=known.arrived)
        if len(events) > self._per_object:
            del events[min(events, key=lambda uid: _order(events[uid]))]
        self._by_object.move_to_end(event.object_uid)
        if len(self._by_object) > self._objects:
            self._by_object.popitem(last=False)

    def of(self, object_uid: str) -> tuple[Event, ...]:
        """Give the events of one object, oldest first."""
        return tuple(sorted(self._by_object.get(object_uid, {}).values(), key=_order))

    def forget(self, object_uid: str) -> None:
        """Drop the events of an object that nobody will ask for any more."""
        self._by_object.pop(object_uid, None)

    def __len__(self) -> int:
        return sum(len(events) for events in self._by_object.values())


def _order(event: Event) -> tuple[datetime, datetime, int]:
    """Order by when it happened. Of one second, the order of arrival is the better clock."""
    return event.last.replace(microsecond=0), event.arrived, event.version
