"""The cluster as a watch delivers it, and the snapshots that are handed out."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from hub_ext.catalog.model import Pool
from hub_ext.cluster.events import EventIndex, read_event
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.pods import read_pod, reduce_pod
from hub_ext.cluster.state import ClusterState
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import Weights
from hub_ext.quota.usage import Owner
from tests.unit.cluster.objects import GPU, NOW, at, make_event, make_node, make_pod

POOL = {"gpu-workspaces.jupyter.org/pool": "gpu"}


@pytest.fixture
def state() -> ClusterState:
    return ClusterState(Weights(by_pool={}, by_resource={}))


def used_by(state: ClusterState, user: str) -> Any:
    return state.observed.usage(Owner(user=user)).user[GPU]


def test_pods_come_change_and_go(state: ClusterState) -> None:
    state.put(Kind.PODS, make_pod(), NOW)
    assert used_by(state, "ada") == 1
    assert state.snapshot(NOW).unplaced
    key = state.put(Kind.PODS, make_pod(node="n1"), NOW)
    snapshot = state.snapshot(NOW)
    assert snapshot.used["n1"][GPU] == 1
    assert not snapshot.unplaced
    state.put(Kind.PODS, make_pod(node="n1", phase="Failed"), NOW)
    assert used_by(state, "ada") == 0
    assert not state.snapshot(NOW).used["n1"]
    state.drop(Kind.PODS, key)
    assert state.pod("hub", "jupyter-ada") is None
    assert not state.raw_pods


def test_a_snapshot_does_not_change_any_more(state: ClusterState) -> None:
    state.put(Kind.PODS, make_pod(), NOW)
    before = state.snapshot(NOW)
    state.drop(Kind.PODS, "hub/jupyter-ada")
    state.put(Kind.PODS, make_pod("jupyter-bob", uid="2"), NOW)
    assert list(before.pods) == [("hub", "jupyter-ada")]
    assert list(state.snapshot(NOW).pods) == [("hub", "jupyter-bob")]
    with pytest.raises(TypeError):
        before.pods["x"] = None  # type: ignore[index]


def test_a_pod_of_the_same_name_is_another_pod(state: ClusterState) -> None:
    state.put(Kind.PODS, make_pod(uid="old", node="n1", gpus=2), NOW)
    state.put(Kind.PODS, make_pod(uid="new", node="n2", gpus=1), NOW)
    assert used_by(state, "ada") == 1
    assert not state.observed.has_pod("old")
    assert state.snapshot(NOW).used["n2"][GPU] == 1
    assert not state.snapshot(NOW).used["n1"]


def test_a_deletion_that_outlasts_its_grace_frees_the_room(state: ClusterState) -> None:
    going = {"deletionTimestamp": at(0), "deletionGracePeriodSeconds": 30}
    state.put(Kind.PODS, make_pod(node="n1", metadata=going), NOW)
    state.expire(NOW + timedelta(seconds=30))
    assert used_by(state, "ada") == 1
    snapshot = state.snapshot(NOW + timedelta(seconds=31))
    assert used_by(state, "ada") == 0
    assert not snapshot.used["n1"]


def test_pods_of_nobody_take_room_on_nodes_but_from_no_limit(state: ClusterState) -> None:
    hub = make_pod("hub", node="n1", labels={"component": "hub"})
    hub["metadata"]["annotations"] = {}
    state.put(Kind.PODS, hub, NOW)
    outside = make_pod("train", uid="9", node="n1", metadata={"namespace": "elsewhere"})
    state.put(Kind.OUTSIDE, outside, NOW)
    assert len(state.observed) == 0
    snapshot = state.snapshot(NOW)
    assert snapshot.used["n1"][GPU] == 2
    assert list(snapshot.pods) == [("hub", "hub")]
    state.lose(Kind.OUTSIDE)
    assert state.snapshot(NOW).used["n1"][GPU] == 1


def test_what_cannot_be_seen_is_unknown_not_empty(state: ClusterState) -> None:
    assert state.snapshot(NOW).availability(Resources({GPU: 1}), None).free is None
    assert state.snapshot(NOW).quotas_of("hub") is None
    state.seen(Kind.NODES)
    state.seen(Kind.QUOTAS, "hub")
    assert state.snapshot(NOW).availability(Resources({GPU: 1}), None).free == 0
    assert state.snapshot(NOW).quotas_of("hub") == ()
    assert state.snapshot(NOW).quotas_of("other") is None
    state.put(Kind.NODES, make_node(), NOW)
    state.lose(Kind.NODES)
    state.lose(Kind.QUOTAS, "hub")
    assert state.snapshot(NOW).nodes is None
    assert state.snapshot(NOW).quotas_of("hub") is None


def test_losing_one_namespace_keeps_the_others(state: ClusterState) -> None:
    for namespace in ("hub", "nlp"):
        quota = {"metadata": {"name": "q", "namespace": namespace}, "spec": {"hard": {"pods": "1"}}}
        state.put(Kind.QUOTAS, quota, NOW)
        state.seen(Kind.QUOTAS, namespace)
    state.lose(Kind.QUOTAS, "hub")
    snapshot = state.snapshot(NOW)
    assert snapshot.quotas_of("hub") is None
    assert [one.name for one in snapshot.quotas_of("nlp") or ()] == ["q"]


def test_availability_counts_who_waits_and_says_if_it_is_exact(state: ClusterState) -> None:
    state.seen(Kind.NODES)
    state.put(Kind.NODES, make_node(labels={"pool": "gpu"}, allocatable={GPU: "4"}), NOW)
    state.put(Kind.PODS, make_pod("jupyter-a", uid="1", labels=POOL), NOW)
    state.put(Kind.PODS, make_pod("jupyter-b", uid="2", node="n1", labels=POOL), NOW)
    gated = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    state.put(Kind.PODS, make_pod("jupyter-c", uid="3", labels=POOL, spec=gated), NOW)
    pool = Pool.model_validate({"nodeSelector": {"pool": "gpu"}})
    asked = Resources({GPU: 1, "servers": 1, "gpuEquivalents": 1})
    found = state.snapshot(NOW).availability(asked, pool, pool_name="gpu")
    assert (found.free, found.exact) == (2, False)
    state.seen(Kind.OUTSIDE)
    assert state.snapshot(NOW).availability(asked, pool, pool_name="gpu").exact


def test_place_says_where_a_workspace_may_run(state: ClusterState) -> None:
    assert state.snapshot(NOW).place(Resources({GPU: 1}), None).nodes is None
    state.seen(Kind.NODES)
    zone = {"topology.kubernetes.io/zone": "a", "pool": "gpu"}
    state.put(Kind.NODES, make_node(labels=zone, allocatable={GPU: "2"}), NOW)
    state.put(Kind.NODES, make_node("n2", labels={**zone, "topology.kubernetes.io/zone": "b"}), NOW)
    pool = Pool.model_validate({"nodeSelector": {"pool": "gpu"}, "scaleUp": "5m"})
    place = state.snapshot(NOW).place(Resources({GPU: 4}), pool, home_zones=frozenset("c"))
    assert (place.nodes, place.offering, place.scales) == (2, 0, True)
    assert (place.zones, place.home_zones) == ({"a", "b"}, {"c"})


def test_a_layout_change_is_timed_from_when_it_was_first_seen(state: ClusterState) -> None:
    changing = make_node(labels={"nvidia.com/mig.config.state": "pending"})
    state.put(Kind.NODES, changing, NOW)
    state.put(Kind.NODES, changing, NOW + timedelta(minutes=5))
    assert state.snapshot(NOW).changing_since == {"n1": NOW}
    state.put(Kind.NODES, make_node(labels={"nvidia.com/mig.config.state": "success"}), NOW)
    assert state.snapshot(NOW).changing_since == {}


def test_workloads_are_found_by_their_pod(state: ClusterState) -> None:
    workload = {
        "metadata": {"name": "w", "namespace": "hub", "uid": "w", "ownerReferences": [{"uid": "pod-1"}]},
        "spec": {"queueName": "q"},
    }
    key = state.put(Kind.WORKLOADS, workload, NOW)
    pod = read_pod(make_pod())
    found = state.snapshot(NOW).workload_of(pod)
    assert found is not None
    assert found.queue == "q"
    state.drop(Kind.WORKLOADS, key)
    assert state.snapshot(NOW).workload_of(pod) is None


def test_no_secret_of_a_pod_is_kept(state: ClusterState) -> None:
    pod = make_pod(metadata={"annotations": {"private": "secret", "hub.jupyter.org/username": "ada"}})
    pod["spec"]["containers"][0]["ports"] = [{"name": "notebook-port", "containerPort": 8888}]
    state.put(Kind.PODS, pod, NOW)
    kept = state.raw_pods["hub/jupyter-ada"]
    assert "secret" not in json.dumps(kept)
    assert "secret" not in repr(state.pod("hub", "jupyter-ada"))
    assert kept["spec"]["containers"][0]["ports"][0]["containerPort"] == 8888
    assert kept["status"] == {"phase": "Pending"}
    assert reduce_pod({"metadata": {"name": "x"}})["status"] == {}


# Events -----------------------------------------------------------------------------------------------------


def read(event: dict[str, Any], seconds: float = 0) -> Any:
    return read_event(event, NOW + timedelta(seconds=seconds))


def test_both_forms_of_events_become_one() -> None:
    old = read(make_event("Pulling", seconds=3, container="notebook"))
    new = read(make_event("Scheduled", seconds=2.5, exact=True, reportingComponent="default-scheduler"))
    assert (old.first, old.container, old.source) == (NOW + timedelta(seconds=3), "notebook", "")
    assert (new.first, new.last, new.source) == (
        NOW + timedelta(seconds=2.5),
        NOW + timedelta(seconds=2.5),
        "default-scheduler",
    )


def test_events_k8s_io_is_read_too() -> None:
    event = {
        "metadata": {"name": "e", "uid": "e", "namespace": "hub", "resourceVersion": "7"},
        "regarding": {
            "kind": "Pod",
            "name": "jupyter-ada",
            "uid": "pod-1",
            "fieldPath": "spec.initContainers{fetch}",
        },
        "reason": "FailedScheduling",
        "note": "0/4 nodes",
        "type": "Warning",
        "eventTime": at(1, micro=True),
        "series": {"count": 5, "lastObservedTime": at(50, micro=True)},
        "reportingController": "default-scheduler",
    }
    found = read(event)
    assert (found.message, found.count, found.container, found.warning) == ("0/4 nodes", 5, "fetch", True)
    assert (found.first, found.last, found.version) == (
        NOW + timedelta(seconds=1),
        NOW + timedelta(seconds=50),
        7,
    )


def test_a_repeated_event_is_one_that_began_long_ago() -> None:
    event = make_event("FailedScheduling", seconds=-1620, count=141, lastTimestamp=at(0))
    found = read(event)
    assert (found.count, found.first, found.last) == (141, NOW - timedelta(minutes=27), NOW)


def test_without_any_time_the_arrival_counts() -> None:
    bare = make_event("Odd", firstTimestamp=None, lastTimestamp=None)
    assert read(bare, 5).first == NOW + timedelta(seconds=5)


def test_events_of_one_second_keep_the_order_in_which_they_came() -> None:
    index = EventIndex()
    index.put(read(make_event("Pulling", seconds=2), seconds=2.1))
    index.put(read(make_event("Scheduled", seconds=2.9, exact=True), seconds=2.0))
    assert [event.reason for event in index.of("pod-1")] == ["Scheduled", "Pulling"]


def test_nodes_that_withhold_cards_are_told_apart_from_those_that_have_too_few(state: ClusterState) -> None:
    state.seen(Kind.NODES)
    for name, there, given in (("faulty", "8", "0"), ("small", "1", "1"), ("none", "0", "0")):
        node = make_node(name, allocatable={GPU: given})
        node["status"]["capacity"] = {**node["status"]["allocatable"], GPU: there}
        state.put(Kind.NODES, node, NOW)
    place = state.snapshot(NOW).place(Resources({GPU: 2}), None)
    assert (place.nodes, place.offering, place.faulty) == (3, 0, ("faulty",))


def test_a_change_of_an_event_replaces_it_and_keeps_its_place() -> None:
    index = EventIndex()
    index.put(read(make_event("BackOff", name="b"), seconds=1))
    index.put(read(make_event("BackOff", name="b", count=4), seconds=9))
    (event,) = index.of("pod-1")
    assert (event.count, event.arrived) == (4, NOW + timedelta(seconds=1))


def test_the_index_is_bounded_in_both_directions() -> None:
    index = EventIndex(per_object=3, objects=2)
    for second in range(10):
        index.put(read(make_event("E", seconds=second), seconds=second))
    assert [event.first.second for event in index.of("pod-1")] == [7, 8, 9]
    for uid in ("pod-2", "pod-3"):
        index.put(read(make_event("E", uid=uid)))
    assert index.of("pod-1") == ()
    assert len(index) == 2
    index.forget("pod-2")
    index.forget("never-there")
    assert len(index) == 1


def test_pods_that_share_a_name_do_not_share_events() -> None:
    index = EventIndex()
    index.put(read(make_event("Failed", uid="old")))
    assert index.of("new") == ()
