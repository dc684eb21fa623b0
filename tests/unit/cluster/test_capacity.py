"""What nodes really offer, and how many workspaces fit now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hub_ext.catalog.model import Pool
from hub_ext.cluster import capacity
from hub_ext.cluster.capacity import Availability, Supply, can_scale, candidates, count_free, pool_nodes
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.nodes import (
    MIG_PATIENCE,
    Node,
    findings,
    read_node,
    stale_whole_cards,
    untolerated,
)
from hub_ext.cluster.placement import read_placement
from hub_ext.cluster.snapshot import Snapshot
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.supplies import Supplies
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import Weights
from tests.unit.cluster.objects import GPU, NOW, make_node, make_pod

SMALL, HALF = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
SHARED = "nvidia.com/gpu.shared"


def node(name: str = "n1", labels: dict[str, str] | None = None, **allocatable: str) -> Node:
    named = {key.replace("gpu", GPU): value for key, value in allocatable.items()}
    return read_node(make_node(name, labels=labels, allocatable=named))


def of(resources: dict[str, str], labels: dict[str, str] | None = None, name: str = "n1") -> Node:
    return read_node(make_node(name, labels=labels, allocatable=resources))


def codes(*nodes: Node, **more: Any) -> list[tuple[str, str]]:
    return [(one.severity.value, one.code) for one in findings(nodes, now=NOW, **more)]


STOPPED = of({GPU: "0"}, {"nvidia.com/gpu.count": "4", "nvidia.com/gpu.product": "NVIDIA-H100"}, "a")
MIXED = of(
    {GPU: "1", SMALL: "3", HALF: "1"}, {"nvidia.com/gpu.count": "2", "nvidia.com/mig.strategy": "mixed"}, "b"
)
SLICES = of(
    {SMALL: "3", HALF: "1"},
    {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "0", "nvidia.com/mig.strategy": "mixed"},
    "c",
)


def test_what_exists_follows_allocatable_never_labels() -> None:
    """Seven cards stand in the labels, one can be had."""
    offered = [one.usable for one in (STOPPED, MIXED, SLICES)]
    assert sum(int(one[GPU]) for one in offered) == 1
    assert sum(int(one[SMALL]) for one in offered) == 6
    assert sum(int(one[HALF]) for one in offered) == 2
    assert codes(STOPPED, MIXED, SLICES) == [("error", "gpu-node-without-resource")]


def test_labels_that_disagree_are_findings_and_change_nothing() -> None:
    shared_label_missing = of({GPU: "4"}, {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "1"}, "x")
    started_too_early = of({GPU: "0"}, {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4"}, "y")
    assert (shared_label_missing.usable[GPU], started_too_early.usable[GPU]) == (4, 0)
    assert codes(shared_label_missing, started_too_early) == [
        ("warning", "gpu-count-mismatch"),
        ("error", "gpu-node-without-resource"),
    ]


def test_whole_cards_announced_beside_the_slices_that_they_were_cut_into() -> None:
    cut = of(
        {GPU: "2", SMALL: "6", "nvidia.com/mig-2g.20gb": "4", HALF: "0"},
        {"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.count": "2"},
    )
    assert stale_whole_cards(cut) == 2
    assert {name: cut.usable[name] for name in (GPU, SMALL, "nvidia.com/mig-2g.20gb")} == {
        GPU: 0,
        SMALL: 6,
        "nvidia.com/mig-2g.20gb": 4,
    }
    assert HALF not in cut.usable
    assert codes(cut) == [("warning", "gpu-count-stale")]


def test_shared_cards_beside_slices_are_not_taken_for_stale() -> None:
    """Seen on a node with time-slicing and the mixed strategy: four shares of the one whole card."""
    labels = {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    }
    shared = of({GPU: "4", SMALL: "6", HALF: "1"}, labels)
    assert shared.usable[GPU] == 4


def test_one_strategy_and_different_sizes_offer_nothing() -> None:
    labels = {
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-INVALID",
        "nvidia.com/gpu.count": "0",
    }
    invalid = of({GPU: "0"}, labels)
    assert codes(invalid) == [("error", "mig-single-mixed-sizes")]
    assert available(Resources({GPU: 1}), [invalid], {}).supply is Supply.NOT_OFFERED


CHANGING = of(
    {GPU: "2", SMALL: "3"},
    {
        "nvidia.com/mig.config.state": "pending",
        "nvidia.com/gpu.deploy.device-plugin": "paused-for-mig-change",
        "nvidia.com/gpu.count": "2",
    },
    "m",
)


def test_while_the_layout_changes_nothing_is_promised() -> None:
    assert not [name for name in CHANGING.usable if name.startswith("nvidia.com/")]
    assert CHANGING.usable["cpu"] == 64000


@pytest.mark.parametrize(("minutes", "found"), [(14, []), (15, [("error", "mig-change-stuck")])])
def test_a_layout_that_changes_for_long_is_stuck(minutes: int, found: list[tuple[str, str]]) -> None:
    since = {"m": NOW - timedelta(minutes=minutes)}
    assert timedelta(minutes=15) == MIG_PATIENCE
    assert codes(CHANGING, changing_since=since) == found
    assert codes(CHANGING) == [], "since when is not known"


def test_a_stuck_change_names_what_is_paused() -> None:
    (finding,) = findings([CHANGING], now=NOW, changing_since={"m": NOW - timedelta(hours=2)})
    assert "nvidia.com/gpu.deploy.device-plugin" in finding.message


def test_cpu_nodes_give_no_findings() -> None:
    assert codes(node()) == []


# Placement --------------------------------------------------------------------------------------------------


def pool(**facts: Any) -> Pool:
    return Pool.model_validate(facts)


def test_a_pool_is_its_labels_and_taints() -> None:
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    tainted = read_node(make_node("t", labels={"pool": "gpu"}, taints=[taint]))
    plain = read_node(make_node("p", labels={"pool": "gpu"}))
    soft = read_node(make_node("s", labels={"pool": "gpu"}, taints=[{**taint, "effect": "PreferNoSchedule"}]))
    other = read_node(make_node("o", labels={"pool": "cpu"}))
    nodes = [tainted, plain, soft, other]

    def names(asked: Resources, **facts: Any) -> list[str]:
        found = pool_nodes(nodes, pool(nodeSelector={"pool": "gpu"}, **facts), asked)
        return [one.name for one in found]

    assert names(Resources({"cpu": 1})) == ["p", "s"]
    assert names(Resources({GPU: 1})) == ["t", "p", "s"], "asking for the resource tolerates its taint"
    exists = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    assert names(Resources({"cpu": 1}), tolerations=exists) == ["t", "p", "s"]
    assert [one.name for one in pool_nodes(nodes, None, Resources({"cpu": 1}))] == ["p", "s", "o"]


@pytest.mark.parametrize(
    ("toleration", "accepted"),
    [
        ({"key": "a", "value": "1"}, True),
        ({"key": "a", "value": "2"}, False),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "b", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "a", "value": "1", "effect": "NoExecute"}, False),
    ],
)
def test_which_taints_are_tolerated(toleration: dict[str, str], accepted: bool) -> None:
    tainted = read_node(make_node(taints=[{"key": "a", "value": "1", "effect": "NoSchedule"}]))
    tolerations = pool(tolerations=[toleration]).tolerations
    assert (untolerated(tainted, tolerations, Resources()) == ()) is accepted


@pytest.mark.parametrize(
    ("spec", "takes"),
    [({}, True), ({"unschedulable": True}, False), ({"ready": "False"}, False), ({"ready": None}, False)],
)
def test_closed_and_silent_nodes_take_nothing(spec: dict[str, Any], takes: bool) -> None:
    assert read_node(make_node(**spec)).takes_pods is takes


# How many fit -----------------------------------------------------------------------------------------------


def available(
    asked: Resources, nodes: list[Node], used: dict[str, Resources], waiting: int = 0, **more: Any
) -> Availability:
    where = candidates(nodes, asked)
    return capacity.available(asked, where, count_free(asked, where, used) - waiting, **more)


ASKED = Resources({"cpu": 8000, "memory": 64 * 1024**3, GPU: 1})


def test_a_gpu_is_only_free_where_there_is_processor_and_memory_for_it() -> None:
    nodes = [node("a", gpu="4"), node("b", gpu="4")]
    used = {"a": Resources({GPU: 1, "cpu": 10000}), "b": Resources({"memory": 500 * 1024**3})}
    found = available(ASKED, nodes, used)
    assert (found.supply, found.free, found.exact, found.nodes) == (Supply.FREE, 3, True, 2)


def test_those_who_wait_come_first() -> None:
    found = available(ASKED, [node(gpu="2")], {}, waiting=2, exact=False)
    assert (found.supply, found.free, found.exact) == (Supply.FULL, 0, False)


def test_full_can_grow_or_not() -> None:
    used = {"n1": Resources({GPU: 2})}
    assert available(ASKED, [node(gpu="2")], used).supply is Supply.FULL
    assert available(ASKED, [node(gpu="2")], used, scales=True).supply is Supply.WILL_SCALE
    assert available(ASKED, [], {}).supply is Supply.NO_NODE
    assert available(ASKED, [], {}, scales=True).supply is Supply.WILL_SCALE
    assert can_scale(pool(scaleUp="3m"), ASKED)
    assert not can_scale(pool(), ASKED)
    assert not can_scale(None, ASKED)


@pytest.mark.parametrize(
    ("autoscaler", "resource", "supply"),
    [
        ("karpenter", SMALL, Supply.NO_SCALE_UP),
        ("karpenter", SHARED, Supply.NO_SCALE_UP),
        ("karpenter", GPU, Supply.WILL_SCALE),
        ("cluster-autoscaler", SMALL, Supply.WILL_SCALE),
        (None, SMALL, Supply.WILL_SCALE),
    ],
)
def test_an_autoscaler_that_does_not_know_the_resource_adds_nothing(
    autoscaler: str | None, resource: str, supply: Supply
) -> None:
    asked, place = Resources({"cpu": 1000, resource: 1}), pool(scaleUp="3m", autoscaler=autoscaler)
    empty = Snapshot(taken=NOW, nodes={})
    assert empty.availability(asked, place).supply is supply
    assert empty.place(asked, place).scales is (supply is Supply.WILL_SCALE)
    full = Snapshot(taken=NOW, nodes={"n1": of({"cpu": "1", resource: "1"})}, used={"n1": asked})
    expected = Supply.FULL if supply is Supply.NO_SCALE_UP else supply
    assert full.availability(asked, place).supply is expected


@pytest.mark.parametrize(
    ("asked", "offered", "hint"),
    [
        (GPU, {GPU: "0", SHARED: "8"}, SHARED),
        (SMALL, {f"{SMALL}.me": "1"}, f"{SMALL}.me"),
        (f"{SMALL}.me", {SMALL: "1"}, SMALL),
        (GPU, {}, ""),
    ],
)
def test_a_name_that_nobody_offers_comes_with_the_name_that_is_offered(
    asked: str, offered: dict[str, str], hint: str
) -> None:
    found = available(Resources({asked: 1}), [of(offered)], {})
    assert (found.supply, found.hint) == (Supply.NOT_OFFERED, hint)


def test_lists_of_images_that_may_be_cut_are_not_proof_of_absence() -> None:
    made = make_node()
    made["status"]["images"] = [{"names": [f"registry.example.com/i{n}@sha256:x"]} for n in range(50)]
    assert not read_node(made).images_complete
    made["status"]["images"].pop()
    assert read_node(made).images_complete
    assert "registry.example.com/i7@sha256:x" in read_node(made).images


def test_answers_are_shared_for_a_second_and_nodes_until_one_changes() -> None:
    state = ClusterState(Weights(by_pool={}, by_resource={}))
    state.seen(Kind.NODES)
    state.put(Kind.NODES, make_node(labels={"pool": "gpu"}, allocatable={GPU: "4"}), NOW)
    supplies, gpu = Supplies(), pool(nodeSelector={"pool": "gpu"})
    asked = Resources({GPU: 1, "servers": 1})

    def free(seconds: float) -> int | None:
        snapshot = state.snapshot(NOW + timedelta(seconds=seconds))
        return supplies.of(snapshot, asked, gpu, "gpu").free

    assert free(0) == 4
    state.put(Kind.PODS, make_pod(node="n1"), NOW)
    assert free(0.9) == 4
    assert free(1.0) == 3
    state.put(Kind.NODES, make_node("n2", labels={"pool": "gpu"}, allocatable={GPU: "2"}), NOW)
    assert free(2.0) == 5


DEDICATED = {"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("selector", "tolerations", "supply"),
    [
        ({}, [], Supply.NO_NODE),
        ({}, [{"operator": "Equal", **DEDICATED}], Supply.FREE),
        ({}, {"users": {"key": "hub.jupyter.org/dedicated", "operator": "Exists"}}, Supply.FREE),
        ({}, [{"operator": "Equal", **DEDICATED, "value": "core"}], Supply.NO_NODE),
        ({"zone": "a"}, [{"operator": "Exists"}], Supply.FREE),
        ({"zone": "b"}, [{"operator": "Exists"}], Supply.NO_NODE),
        ({"pool": "cpu"}, [{"operator": "Exists"}], Supply.FREE),
    ],
)
def test_where_the_hub_puts_all_its_pods_counts_beside_the_pool(
    selector: dict[str, str], tolerations: Any, supply: Supply
) -> None:
    state = ClusterState(Weights(by_pool={}, by_resource={}))
    state.seen(Kind.NODES)
    node = make_node(labels={"pool": "gpu", "zone": "a"}, allocatable={GPU: "4"}, taints=[DEDICATED])
    state.put(Kind.NODES, node, NOW)
    supplies = Supplies(read_placement(selector, tolerations))
    found = supplies.of(state.snapshot(NOW), Resources({GPU: 1}), pool(nodeSelector={"pool": "gpu"}), "gpu")
    assert found.supply is supply


def test_without_a_pool_the_hubs_placement_is_all_there_is() -> None:
    placement = read_placement({"zone": "a"}, [DEDICATED])
    made = placement.of(None)
    assert made is not None
    assert (made.node_selector, len(made.tolerations)) == ({"zone": "a"}, 1)
    assert read_placement({}, ["not a toleration"]).of(None) is None
