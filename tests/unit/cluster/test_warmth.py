"""Whether a start will be warm, from what nodes list, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from hub_ext.audit import StartLog
from hub_ext.catalog.model import Pool
from hub_ext.cluster.capacity import Supply
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.nodes import Node, read_node
from hub_ext.cluster.starts import Outcome, StartRecord
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.supplies import Supplies
from hub_ext.cluster.waits import NOTHING_USUAL, Usual
from hub_ext.cluster.warmth import Warmth, listed_name, start_text, warmth_of
from hub_ext.names import parse_image
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import Weights
from tests.unit.cluster.objects import GPU, IMAGE, NOW, make_node, make_pod

TORCH = parse_image(IMAGE)
OTHER = "registry.example.com/other@sha256:" + "cd" * 32
SECONDS_20, MINUTES_4 = timedelta(seconds=20), timedelta(minutes=4)


def node(*images: str, name: str = "n1") -> Node:
    made = make_node(name)
    made["status"]["images"] = [{"names": [image], "sizeBytes": 1} for image in images]
    return read_node(made)


@pytest.mark.parametrize(
    ("reference", "listed"),
    [
        (IMAGE, IMAGE),
        (IMAGE.replace("@", ":2.11@"), IMAGE),
        ("registry.example.com:5000/a/b:1", "registry.example.com:5000/a/b:1"),
        ("python", "docker.io/library/python:latest"),
        ("jupyter/base:1", "docker.io/jupyter/base:1"),
    ],
)
def test_references_are_looked_for_as_kubelets_list_them(reference: str, listed: str) -> None:
    assert listed_name(parse_image(reference)) == listed


FULL = node(*(f"registry.example.com/i{number}:1" for number in range(50)))


@pytest.mark.parametrize(
    ("nodes", "warmth", "certain"),
    [
        ([node(IMAGE), node(OTHER, IMAGE)], Warmth(warm=2), True),
        ([node(OTHER)], Warmth(cold=1), False),
        ([node(IMAGE), node(OTHER)], Warmth(warm=1, cold=1), None),
        ([FULL], Warmth(unknown=1), None),
        ([node(IMAGE), FULL], Warmth(warm=1, unknown=1), None),
        ([node()], Warmth(unknown=1), None),
        ([], Warmth(), None),
    ],
    ids=["all", "none", "some", "cut-list", "some-and-cut-list", "no-list", "no-nodes"],
)
def test_what_is_not_listed_is_cold_only_where_the_list_is_whole(
    nodes: Iterable[Node], warmth: Warmth, certain: bool | None
) -> None:
    assert warmth_of(TORCH, nodes) == warmth
    assert warmth.certain is certain


@pytest.mark.parametrize(
    ("warmth", "supply", "text"),
    [
        (Warmth(warm=2), Supply.FREE, "warm start, usually 20 s"),
        (Warmth(cold=2), Supply.FREE, "cold start: its software is fetched first, usually 4 min"),
        (Warmth(warm=1, cold=2), Supply.FREE, "warm start on 1 of 3 nodes, usually 20 s"),
        (Warmth(unknown=2), Supply.FREE, ""),
        (Warmth(), Supply.WILL_SCALE, "a new node usually takes 7 min"),
        (Warmth(), Supply.FULL, ""),
        (Warmth(), Supply.UNKNOWN, ""),
    ],
)
def test_a_card_says_how_the_start_will_be(warmth: Warmth, supply: Supply, text: str) -> None:
    usual = Usual(warm=SECONDS_20, cold=MINUTES_4, scale_up=timedelta(minutes=7))
    assert start_text(warmth, usual, supply) == text


def test_without_starts_of_late_no_time_is_named() -> None:
    assert start_text(Warmth(warm=1), NOTHING_USUAL, Supply.FREE) == "warm start"
    assert start_text(Warmth(), NOTHING_USUAL, Supply.WILL_SCALE) == ""


def test_only_nodes_with_room_count() -> None:
    state = ClusterState(Weights(by_pool={}, by_resource={}))
    for name, images in (("full", [IMAGE]), ("empty", [OTHER])):
        made = make_node(name, allocatable={GPU: "1"})
        made["status"]["images"] = [{"names": images, "sizeBytes": 1}]
        state.put(Kind.NODES, made, NOW)
    state.put(Kind.PODS, make_pod(node="full", phase="Running"), NOW)
    for kind in (Kind.NODES, Kind.OUTSIDE):
        state.seen(kind)
    supplies, asked = Supplies(), Resources({GPU: 1})
    snapshot = state.snapshot(NOW)
    assert supplies.warmth(snapshot, asked, Pool(), "pool", TORCH) == Warmth(cold=1)


def start(seconds: float, *, warm: bool, **phases: float) -> StartRecord:
    return StartRecord(
        at=NOW,
        profile="full",
        version=1,
        pool="h200",
        outcome=Outcome.STARTED,
        seconds=seconds,
        phases={name.replace("_", "-"): value for name, value in phases.items()},
        warm=warm,
    )


def test_what_is_usual_leaves_out_the_wait_for_others() -> None:
    log = StartLog()
    assert log.usual(profile="full", pool="h200") == NOTHING_USUAL
    for one in (
        start(20, warm=True),
        start(620, warm=True, queue=600),
        start(320, warm=True, scale_up=300),
        *(start(240, warm=False, pull=200) for _ in range(3)),
    ):
        log.add(one)
    usual = log.usual(profile="full", pool="h200")
    assert (usual.warm, usual.cold, usual.pull) == (SECONDS_20, MINUTES_4, timedelta(seconds=200))
    assert log.usual(profile="full", pool="other") == NOTHING_USUAL
