"""The cluster as it changes: takes in what a watch delivers, hands out snapshots.

Each change costs the same however large the cluster is; a snapshot copies only the parts that changed.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..quota.arithmetic import FINISHED_PHASES, NOTHING, PodRequest, Resources, pod_request
from ..quota.demand import Weights, holding_of
from ..quota.namespace import read_quota
from ..quota.runs import RunKey, Runs, admitted_run, run_of
from ..quota.usage import Observed
from .events import EventIndex, read_event
from .kinds import Kind
from .nodes import read_node
from .pods import Pod, read_pod, reduce_pod
from .snapshot import Snapshot, frozen
from .workloads import read_workload

_Name = tuple[str, str]


@dataclass(slots=True)
class _Placed:
    """What a pod takes of a node at present."""

    node: str
    taken: Resources


class ClusterState:
    """All that is known of the cluster. Not for use by several threads."""

    def __init__(self, weights: Weights) -> None:
        self.events = EventIndex()
        self.observed = Observed()
        """Holdings of users' pods; call `expire` before relying on it."""
        self.raw_pods: dict[str, dict[str, Any]] = {}
        """Users' pods by ``namespace/name`` in API spelling, reduced to what KubeSpawner reads."""
        self.changes = 0
        """Goes up with every change of a pod, an event, a node or a quota."""
        self._weights = weights
        self._parts: dict[Kind, dict[Any, Any]] = {kind: {} for kind in Kind if kind is not Kind.EVENTS}
        self._visible: set[tuple[Kind, str]] = set()
        self._uids: dict[_Name, str] = {}
        self._owners: dict[_Name, str] = {}
        self._placed: dict[_Name, _Placed] = {}
        self._used: dict[str, Resources] = {}
        self._unplaced: dict[_Name, Pod] = {}
        self._ending: dict[_Name, Pod] = {}
        self._changing: dict[str, datetime] = {}
        self._requests: dict[str, tuple[list[Any], PodRequest]] = {}
        self._runs = Runs()
        self._run_of: dict[str, RunKey] = {}
        self._frozen: dict[str, Mapping[Any, Any]] = {}

    # What a watch delivers

    def put(self, kind: Kind, item: Mapping[str, Any], now: datetime) -> str:
        """Take in an object that is new or has changed; gives a name for it that is unique in its kind."""
        self.changes += 1
        metadata = item["metadata"]
        name = (metadata.get("namespace", ""), metadata["name"])
        match kind:
            case Kind.PODS | Kind.OUTSIDE:
                self._put_pod(kind, name, item, now)
            case Kind.NODES:
                self._put_node(item, now)
            case Kind.EVENTS:
                if event := read_event(item, now):
                    self.events.put(event)
            case Kind.QUOTAS:
                self._set(kind, name, read_quota(item))
            case Kind.LIMIT_RANGES:
                self._set(kind, name, {"spec": item.get("spec") or {}})
            case Kind.WORKLOADS:
                workload = read_workload(item)
                self._owners[name] = workload.owner_uid
                self._set(kind, workload.owner_uid, workload)
                self._count_runs(self._runs.put("/".join(name), admitted_run(item, self._weights)))
        return "/".join(name)

    def drop(self, kind: Kind, key: str) -> None:
        """Take in that an object is gone, by the name that `put` gave."""
        self.changes += 1
        namespace, _, plain = key.rpartition("/")
        name = (namespace, plain)
        if kind in {Kind.PODS, Kind.OUTSIDE}:
            self._drop_pod(kind, name)
        elif kind is Kind.NODES:
            self._changing.pop(plain, None)
            self._unset(kind, plain)
        elif kind is Kind.WORKLOADS:
            self._unset(kind, self._owners.pop(name, ""))
            self._count_runs(self._runs.put(key, None))
        elif kind is not Kind.EVENTS:
            self._unset(kind, name)

    def seen(self, kind: Kind, namespace: str = "") -> None:
        """Note that a collection has been loaded in full."""
        self._visible.add((kind, namespace))

    def lose(self, kind: Kind, namespace: str = "") -> None:
        """Note that a collection cannot be seen (any more): what was known of it is forgotten.

        Events stay: what they explained is still true.
        """
        self._visible.discard((kind, namespace))
        if kind is Kind.EVENTS:
            return
        names = self._owners if kind is Kind.WORKLOADS else self._parts[kind]
        for name in list(names):
            if kind is Kind.NODES:
                self.drop(kind, f"/{name}")
            elif not namespace or name[0] == namespace:
                self.drop(kind, "/".join(name))

    def _set(self, kind: Kind, key: Any, value: Any) -> None:
        self._parts[kind][key] = value
        self._frozen.pop(kind, None)

    def _unset(self, kind: Kind, key: Any) -> None:
        self._parts[kind].pop(key, None)
        self._frozen.pop(kind, None)

    def _put_node(self, item: Mapping[str, Any], now: datetime) -> None:
        node = read_node(item)
        if node.mig_changing:
            self._changing.setdefault(node.name, now)
        else:
            self._changing.pop(node.name, None)
        self._set(Kind.NODES, node.name, node)

    def _put_pod(self, kind: Kind, name: _Name, item: Mapping[str, Any], now: datetime) -> None:
        request = self._request_of(item)
        pod = read_pod(item, request)
        self._replace_uid(name, pod.uid)
        counts = pod.counts(now)
        self._place(name, pod.node, pod.requests if counts else NOTHING)
        if kind is Kind.OUTSIDE:
            self._parts[kind][name] = pod.uid
            return
        self._set(kind, name, pod)
        holding = holding_of(item, self._weights, request)
        self.observed.put(pod.uid, holding if counts and holding.owner.user else None)
        if key := run_of(item):
            # A pod that has finished takes nothing, and is no longer missing either.
            self._run_of[pod.uid] = key
            self._runs.put_pod(key, pod.uid, holding.taken)
            self._count_runs([key])
        self.raw_pods["/".join(name)] = reduce_pod(item)
        self._note(self._unplaced, name, pod if not pod.node and pod.phase not in FINISHED_PHASES else None)
        self._note(self._ending, name, pod if counts and pod.deleted else None)

    def _request_of(self, item: Mapping[str, Any]) -> PodRequest:
        """Work out what a pod asks for, once: of its many changes hardly one is about that."""
        uid, spec = item["metadata"]["uid"], item.get("spec") or {}
        asked = [
            (one.get("name"), one.get("resources"), one.get("restartPolicy"))
            for part in ("containers", "initContainers")
            for one in spec.get(part) or ()
        ]
        asked.append(("", spec.get("resources"), spec.get("overhead")))
        known = self._requests.get(uid)
        if known is None or known[0] != asked:
            known = self._requests[uid] = (asked, pod_request(spec))
        return known[1]

    def _note(self, notes: dict[_Name, Pod], name: _Name, pod: Pod | None) -> None:
        if pod is None:
            notes.pop(name, None)
        else:
            notes[name] = pod
        self._frozen.pop("unplaced", None)

    def _replace_uid(self, name: _Name, uid: str) -> None:
        before = self._uids.get(name)
        if before is not None and before != uid:
            self._forget(before)
        self._uids[name] = uid

    def _drop_pod(self, kind: Kind, name: _Name) -> None:
        self._place(name, "", NOTHING)
        uid = self._uids.pop(name, None)
        if uid is not None:
            self._forget(uid)
        self._unset(kind, name)
        self.raw_pods.pop("/".join(name), None)
        self._note(self._unplaced, name, None)
        self._note(self._ending, name, None)

    def _forget(self, uid: str) -> None:
        self._requests.pop(uid, None)
        self.observed.put(uid, None)
        if key := self._run_of.pop(uid, None):
            self._runs.put_pod(key, uid, None)
            self._count_runs([key])

    def _count_runs(self, keys: Iterable[RunKey]) -> None:
        for key in keys:
            self.observed.put(f"run:{'/'.join(key)}", self._runs.missing(key))

    def _place(self, name: _Name, node: str, taken: Resources) -> None:
        before = self._placed.pop(name, None)
        if before is not None:
            self._used[before.node] = self._used.get(before.node, NOTHING) - before.taken
        if node and taken:
            self._placed[name] = _Placed(node, taken)
            self._used[node] = self._used.get(node, NOTHING) + taken
        if before is not None or taken:
            self._frozen.pop("used", None)

    # What is handed out

    def expire(self, now: datetime) -> None:
        """Stop counting pods whose deletion has outlasted its grace period."""
        for name, pod in list(self._ending.items()):
            if not pod.counts(now):
                self.observed.put(pod.uid, None)
                self._place(name, "", NOTHING)
                del self._ending[name]

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Give one pod as it is now."""
        found: Pod | None = self._parts[Kind.PODS].get((namespace, name))
        return found

    def snapshot(self, now: datetime) -> Snapshot:
        """Give everything as it is at `now`."""
        self.expire(now)
        return Snapshot(
            taken=now,
            pods=self._copy(Kind.PODS, self._parts[Kind.PODS]),
            nodes=self._copy(Kind.NODES, self._parts[Kind.NODES]) if self._sees_nodes else None,
            quotas=self._copy(Kind.QUOTAS, self._parts[Kind.QUOTAS]),
            limit_ranges=self._copy(Kind.LIMIT_RANGES, self._parts[Kind.LIMIT_RANGES]),
            workloads=self._copy(Kind.WORKLOADS, self._parts[Kind.WORKLOADS]),
            used=self._copy("used", self._used),
            unplaced=self._copy("unplaced", self._unplaced),
            visible=frozenset(self._visible),
            changing_since=frozen(self._changing),
        )

    def _copy(self, key: str, part: dict[Any, Any]) -> Mapping[Any, Any]:
        if key not in self._frozen:
            self._frozen[key] = frozen(part)
        return self._frozen[key]

    @property
    def _sees_nodes(self) -> bool:
        return (Kind.NODES, "") in self._visible
