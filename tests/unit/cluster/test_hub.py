"""A hub's starts from reservation to record, on a cluster that is fed by hand."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hub_ext.catalog.compose import Workspace, compose
from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.cluster.capacity import UNKNOWN
from hub_ext.cluster.hub import HubCluster, Start
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.offer import Offer, Rules, parts, summary
from hub_ext.cluster.reflector import NoEvents, SharedPods
from hub_ext.cluster.starts import Outcome
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.waits import Stage, WaitReason
from hub_ext.cluster.watch import ClusterWatch
from hub_ext.metrics import Metrics
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import weights_of
from hub_ext.quota.ledger import SETTLE
from hub_ext.quota.policy import Room
from hub_ext.quota.refusals import Answer, explain
from hub_ext.quota.usage import Owner
from hub_ext.quota.verdicts import Reason, Refusal
from tests.unit.cluster.objects import (
    GPU,
    NOW,
    at,
    condition,
    container_status,
    make_event,
    make_node,
    make_pod,
)

ADA = Owner(user="ada", team="nlp")
LABELS = {"gpu-workspaces.jupyter.org/team": "nlp", "gpu-workspaces.jupyter.org/pool": "gpu"}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def catalog() -> Catalog:
    return load_catalog(
        {
            "apiVersion": "gpu-workspaces/v1",
            "kind": "Catalog",
            "images": {"base": {"ref": "registry.example.com/b@sha256:" + "a" * 64, "displayName": "Base"}},
            "pools": {
                "gpu": {
                    "nodeSelector": {"pool": "gpu"},
                    "gpu": {"product": "NVIDIA-H200", "sharing": "exclusive"},
                }
            },
            "quota": {"servers": 50},
            "teams": {"nlp": {"groups": ["nlp"], "quota": {GPU: 3}, "perUser": {GPU: 2}}},
            "profiles": [
                {
                    "name": "one-gpu",
                    "version": 1,
                    "displayName": "One GPU",
                    "images": ["base"],
                    "resources": {"cpu": 2, "memory": "4Gi", "gpu": {"pool": "gpu", "count": 1}},
                }
            ],
        }
    )


@pytest.fixture
def workspace(catalog: Catalog) -> Workspace:
    return compose(catalog, catalog.profiles[0], {})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.fixture
def hub(catalog: Catalog, clock: Clock, metrics: Metrics) -> HubCluster:
    state = ClusterState(weights_of(catalog))
    rules = Rules(catalog=catalog, weights=weights_of(catalog))
    watch = ClusterWatch(state, [], clock=clock)
    watch._loaded.set()
    return HubCluster(watch, rules, metrics=metrics, clock=clock)


def manifest(user: str = "ada", server: str = "", **more: Any) -> dict[str, Any]:
    name = f"jupyter-{user}" + (f"--{server}" if server else "")
    pod = make_pod(name, uid=name, labels=LABELS, **more)
    pod["metadata"]["annotations"] = {
        "hub.jupyter.org/username": user,
        "hub.jupyter.org/servername": server,
    }
    return pod


def begin(
    hub: HubCluster, workspace: Workspace, user: str = "ada", server: str = "", team: str = "nlp"
) -> Start | Refusal:
    pod = manifest(user, server)["metadata"]["name"]
    return hub.begin(workspace, Owner(user=user, team=team), namespace="hub", name=pod, server=server)


def begun(hub: HubCluster, workspace: Workspace, user: str = "ada", server: str = "") -> Start:
    start = begin(hub, workspace, user, server)
    assert isinstance(start, Start)
    return start


def seen(hub: HubCluster, pod: dict[str, Any]) -> None:
    hub.watch._put(Kind.PODS, pod)


def test_two_named_servers_in_the_same_instant_with_room_for_one(
    hub: HubCluster, workspace: Workspace
) -> None:
    seen(hub, manifest("ada", node="n1"))
    first, second = begin(hub, workspace, "ada", "a"), begin(hub, workspace, "ada", "b")
    assert isinstance(first, Start)
    assert isinstance(second, Refusal)
    assert second.reason is Reason.USER_LIMIT
    first.refused("namespace-quota")
    assert isinstance(begin(hub, workspace, "ada", "b"), Start)


def test_a_sidecar_in_the_manifest_counts_and_is_named(hub: HubCluster, workspace: Workspace) -> None:
    pod = manifest()
    sidecar = {"name": "monitor", "resources": {"limits": {GPU: "2"}}}
    pod["spec"]["containers"].append(sidecar)
    start = begun(hub, workspace)
    assert start.take(manifest()) is None
    refusal = start.take(pod)
    assert refusal is not None
    assert refusal.text.endswith("2 of its containers ask for GPUs: notebook, monitor.")


def test_the_page_sees_what_is_promised_and_not_the_own_server(hub: HubCluster, workspace: Workspace) -> None:
    hub.state.seen(Kind.NODES)
    hub.state.put(Kind.NODES, make_node(labels={"pool": "gpu"}, allocatable={GPU: "8"}), NOW)
    begun(hub, workspace, "bob")
    seen(hub, manifest("ada", node="n1"))
    offer = hub.offer(workspace, ADA, namespace="hub", server="other")
    assert summary(offer) == ("up to 7 free now · 1 more for you · 1 more for your team")
    own = hub.offer(workspace, ADA, namespace="hub")
    assert (own.room.user, own.room.team) == (2, 2)


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (Room(user=2, team=3, cluster=40), ("2 more for you", "3 more for your team")),
        (Room(user=2, team=3, cluster=1), ("2 more for you", "3 more for your team", "1 more in all")),
        (Room(user=None, team=None, cluster=40), ("40 more in all",)),
        (Room(user=1, team=None, cluster=0), ("1 more for you", "none left in all")),
    ],
    ids=["far away", "nearest", "alone", "used up"],
)
def test_what_bounds_all_is_told_where_it_is_the_nearest(room: Room, told: tuple[str, ...]) -> None:
    asked = Resources({GPU: 1})
    assert parts(Offer(asked=asked, refusal=None, room=room, availability=UNKNOWN)) == told


def test_nothing_is_promised_before_the_cluster_is_known(hub: HubCluster, workspace: Workspace) -> None:
    hub.watch._loaded.clear()
    with pytest.raises(RuntimeError, match=r"ready\(\) was not awaited"):
        begin(hub, workspace)


async def test_a_start_is_told_and_recorded(
    hub: HubCluster, workspace: Workspace, clock: Clock, metrics: Metrics
) -> None:
    start = begun(hub, workspace)
    waits = start.waits()
    assert (await anext(waits)).stage is Stage.REQUESTED
    placed = {"conditions": [condition("PodScheduled", seconds=1)]}
    seen(hub, manifest(node="n1", status=placed))
    assert (await anext(waits)).stage is Stage.STARTING
    clock.move(30)
    hub.watch._put(Kind.EVENTS, make_event("Pulling", seconds=2, uid="jupyter-ada", container="notebook"))
    wait = await anext(waits)
    assert (wait.stage, wait.data["seconds"]) == (Stage.PULLING, 28)
    running = {**placed, "containerStatuses": [container_status(running={"startedAt": at(40)})]}
    seen(hub, manifest(node="n1", phase="Running", status=running))
    clock.move(20)
    assert (await anext(waits)).stage is Stage.RUNNING
    start.succeeded()
    start.failed("too late to matter")
    with pytest.raises(StopAsyncIteration):
        await anext(waits)
    (record,) = hub.starts.records
    assert (record.outcome, record.seconds, record.profile, record.pool) == (
        Outcome.STARTED,
        50,
        "one-gpu",
        "gpu",
    )
    assert record.phases == {"queue": 1, "volume": 1, "pull": 38, "warm-up": 10}
    assert metrics.starts.labels("one-gpu", "gpu", "started", "")._value.get() == 1
    assert hub.bookings.promised() == ()


def test_a_pod_that_is_gone_ends_its_start(hub: HubCluster, workspace: Workspace) -> None:
    start = begun(hub, workspace)
    assert start.look().reason is WaitReason.REQUESTED
    seen(hub, manifest())
    assert start.look().reason is WaitReason.SCHEDULING
    hub.watch._drop(Kind.PODS, "hub/jupyter-ada")
    assert not start.look().fatal, "pods cannot be seen"
    hub.state.seen(Kind.PODS, "hub")
    assert (start.look().reason, start.look().fatal) == (WaitReason.DELETED, True)


def test_a_pod_that_was_preempted_is_so_after_it_is_gone(hub: HubCluster, workspace: Workspace) -> None:
    start = begun(hub, workspace)
    hub.state.seen(Kind.PODS, "hub")
    target = condition("TerminationTarget", reason="Preempted", message="Preempted to accommodate a workload")
    ending = manifest(status={"conditions": [target]})
    ending["metadata"] |= {"deletionTimestamp": at(1), "deletionGracePeriodSeconds": 30}
    seen(hub, ending)
    assert start.look().reason is WaitReason.PREEMPTED
    hub.watch._drop(Kind.PODS, "hub/jupyter-ada")
    assert start.look().reason is WaitReason.PREEMPTED


def test_what_keeps_the_pod_from_being_made_is_told_meanwhile(hub: HubCluster, workspace: Workspace) -> None:
    start = begun(hub, workspace)
    start.hold_up(explain(Answer(code=500, message='failed calling webhook "m.example.org": refused')))
    wait = start.look()
    assert (wait.stage, wait.reason, wait.fatal) == (Stage.REQUESTED, Reason.WEBHOOK_UNREACHABLE, False)
    assert "(m.example.org) does not answer" in wait.text
    seen(hub, manifest())
    assert start.look().reason is WaitReason.SCHEDULING


async def test_the_pod_before_is_not_this_start(hub: HubCluster, workspace: Workspace) -> None:
    waiting = container_status(waiting={"reason": "ErrImagePull", "message": "x: not found"})
    seen(hub, manifest(node="n1", status={"containerStatuses": [waiting]}))
    start = begun(hub, workspace)
    assert start.look().reason is WaitReason.REQUESTED
    new = manifest()
    new["metadata"]["uid"] = "another"
    seen(hub, new)
    assert start.look().reason is WaitReason.SCHEDULING


async def test_a_failed_start_holds_its_room_until_it_is_known_to_be_gone(
    hub: HubCluster, workspace: Workspace, clock: Clock
) -> None:
    start = begun(hub, workspace)
    start.failed("timeout", Outcome.TIMED_OUT)
    assert hub.bookings.usage(ADA).user[GPU] == 1
    hub.gone(namespace="hub", user="ada")
    assert hub.bookings.usage(ADA).user[GPU] == 0
    begun(hub, workspace).succeeded()
    assert hub.bookings.usage(ADA).user[GPU] == 1
    clock.move(SETTLE.total_seconds())
    assert hub.bookings.usage(ADA).user[GPU] == 0, "its pod never came to be seen"


async def test_a_fatal_wait_is_told_at_once(hub: HubCluster, workspace: Workspace) -> None:
    start = begun(hub, workspace)
    waits = start.waits()
    await anext(waits)
    status = {
        "reason": "UnexpectedAdmissionError",
        "message": "maximum request size for shared resources is 1",
    }
    seen(hub, manifest(node="n1", phase="Failed", status=status))
    async with asyncio.timeout(240):
        wait = await anext(waits)
    assert (wait.reason, wait.fatal) == (WaitReason.SHARE_REFUSED, True)
    start.failed(wait.reason.value)
    await waits.aclose()
    assert hub.starts.records[0].reason == "share-refused"
    assert hub.bookings.usage(ADA).user[GPU] == 1, "the watch has seen it fail, the hub has not stopped it"


async def test_kubespawner_reads_the_same_pods(hub: HubCluster) -> None:
    seen(hub, manifest(node="n1"))
    pods = SharedPods(hub.watch)
    assert pods.pods["hub/jupyter-ada"]["metadata"]["uid"] == "jupyter-ada"
    await pods.start()
    assert pods.first_load_future.done()
    await pods.stop()
    await hub.watch.stop()
    events = NoEvents()
    assert events.events == []
    assert events.first_load_future.done()


def test_a_start_whose_home_is_elsewhere_names_both_places(hub: HubCluster, workspace: Workspace) -> None:
    hub.state.seen(Kind.NODES)
    zone = {"pool": "gpu", "topology.kubernetes.io/zone": "zone-a"}
    hub.state.put(Kind.NODES, make_node(labels=zone, allocatable={GPU: "8"}), NOW)
    start = begun(hub, workspace)
    seen(hub, manifest())
    conflict = "0/1 nodes are available: 1 node(s) had volume node affinity conflict."
    event = make_event("FailedScheduling", conflict, uid="jupyter-ada", warning=True, exact=True)
    hub.watch._put(Kind.EVENTS, event)
    assert "zone-a" not in start.look().text, "where the home is, is not known"
    start.home_zones = frozenset({"zone-c"})
    wait = start.look()
    assert (wait.reason, wait.fatal) == (WaitReason.ZONE_CONFLICT, True)
    assert "Your home is in zone-c; this workspace's machines are in zone-a." in wait.text
