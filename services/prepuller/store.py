"""The cluster as the prepuller watches it: nodes, its own pods and their events.

Takes in what `hub_ext.cluster.watch.Watch` delivers. Heartbeats and whatever else changes nothing here wake
nobody: in the steady state the prepuller does nothing at all.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from hub_ext.cluster.events import EventIndex, read_event
from hub_ext.cluster.kinds import Kind

from .facts import Machine, canonical, read_machine
from .picture import Seen
from .pods import PullPod, Step, add_events, read_pull_pod


class Store:
    """Nodes and pods as they are now."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self.machines: dict[str, Machine] = {}
        self.nodes_changed = 0
        """Goes up with every change of a node that matters."""
        self._pods: dict[str, PullPod] = {}
        self._raw: dict[str, Mapping[str, Any]] = {}
        """Pods that are not done, as the API has them: an event may tell more about them."""
        self._names: dict[str, str] = {}
        self._events = EventIndex()
        self._visible: set[Kind] = set()
        self._on_change = on_change

    def put(self, kind: Kind, item: Mapping[str, Any], now: datetime) -> str:
        """Take in an object; gives its name with its namespace."""
        metadata = item["metadata"]
        name = f"{metadata.get('namespace', '')}/{metadata['name']}"
        match kind:
            case Kind.NODES:
                self._put_machine(read_machine(item))
            case Kind.PODS:
                self._put_pod(name, item, now)
            case Kind.EVENTS:
                if event := read_event(item, now):
                    self._events.put(event)
                    self._tell(event.object_uid, now)
        return name

    def drop(self, kind: Kind, key: str) -> None:
        """Take in that an object is gone, by the name that `put` gave."""
        name = key.rpartition("/")[2]
        if kind is Kind.NODES and self.machines.pop(name, None) is not None:
            self.nodes_changed += 1
            self._on_change()
        elif kind is Kind.PODS and (pod := self._pods.pop(key, None)) is not None:
            self._raw.pop(key, None)
            self._names.pop(pod.uid, None)
            self._events.forget(pod.uid)
            self._on_change()

    def seen(self, kind: Kind, namespace: str = "") -> None:  # noqa: ARG002 - one namespace is watched
        """Note that a collection has been loaded in full."""
        self._visible.add(kind)
        self._on_change()

    def lose(self, kind: Kind, namespace: str = "") -> None:  # noqa: ARG002 - one namespace is watched
        """Note that a collection cannot be seen any more: nothing is judged until it can."""
        self._visible.discard(kind)
        if kind is Kind.NODES:
            self.machines.clear()
            self.nodes_changed += 1
        elif kind is Kind.PODS:
            self._pods.clear()
            self._raw.clear()
            self._names.clear()

    @property
    def complete(self) -> bool:
        """Whether nodes and pods are both in sight. Events may be missing: they only explain."""
        return {Kind.NODES, Kind.PODS} <= self._visible

    def look(self) -> Seen:
        """Give what is there now."""
        for key, pod in self._pods.items():
            if pod.step is Step.DONE and not pod.listed and self._lists(pod):
                self._pods[key] = replace(pod, listed=True)
        return Seen(machines=dict(self.machines), pods=tuple(self._pods.values()))

    def _lists(self, pod: PullPod) -> bool:
        machine = self.machines.get(pod.node)
        return machine is not None and canonical(pod.image) in machine.images

    def end(self, pod: PullPod) -> None:
        """Note that a pod was asked to go, before the watch says so."""
        key = self._names.get(pod.uid)
        if key is not None:
            self._pods[key] = replace(self._pods[key], ending=True)

    def _put_machine(self, machine: Machine) -> None:
        if self.machines.get(machine.name) != machine:
            self.machines[machine.name] = machine
            self.nodes_changed += 1
            self._on_change()

    def _put_pod(self, key: str, item: Mapping[str, Any], now: datetime) -> None:
        before = self._pods.get(key)
        uid = item["metadata"]["uid"]
        if before is not None and before.uid != uid:
            self._names.pop(before.uid, None)
            before = None
        pod = read_pull_pod(item, self._events.of(uid))
        if pod is None:
            return
        if before is not None and before.step is pod.step:
            pod = _with_memory(replace(pod, noticed=before.noticed), before)
        elif before is not None or Kind.PODS in self._visible:
            pod = replace(pod, noticed=now)
        self._names[uid] = key
        if pod.step is Step.DONE:
            self._raw.pop(key, None)
        else:
            self._raw[key] = item
        if pod != before:
            self._pods[key] = pod
            self._on_change()

    def _tell(self, uid: str, now: datetime) -> None:
        key = self._names.get(uid)
        if key is None:
            return
        if key in self._raw:
            self._put_pod(key, self._raw[key], now)
            return
        before = self._pods[key]
        pod = add_events(before, self._events.of(uid))
        if pod != before:
            self._pods[key] = pod
            self._on_change()


def _with_memory(pod: PullPod, before: PullPod) -> PullPod:
    """Keep what was told earlier: events are forgotten before pods are, and a back-off names no cause."""
    if pod.step is Step.DONE:
        pod = replace(pod, listed=before.listed)
        if pod.present is None and before.present is not None:
            return replace(pod, seconds=before.seconds, size_bytes=before.size_bytes, present=before.present)
    if pod.step is Step.FAILED:
        return replace(pod, reason=before.reason, detail=before.detail)
    return pod
