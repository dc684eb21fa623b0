"""What operators see: one line of all, each node where there are few, and bars where there are many."""

from __future__ import annotations

from typing import Any

import pytest

from hub_ext.cluster.kinds import Kind
from services.prepuller.board import NAMED, SHOWN, TOLD, Headline, Look, Section, build_board, build_headline
from services.prepuller.judge import Judge, Moment
from services.prepuller.reasons import State
from services.prepuller.store import Store
from tests.unit.prepuller import world

CATALOG = world.make_catalog(
    world.make_profile("p", ["base"]),
    images={"base": {"ref": world.ref("base"), "architectures": ["amd64"]}},
)


def moment_of(*nodes: dict[str, Any]) -> Moment:
    store = Store()
    for node in nodes:
        store.put(Kind.NODES, node, world.NOW)
    return Judge(world.settings(), store).judge(CATALOG, world.NOW)


def section_of(moment: Moment) -> Section:
    (section,) = build_board(moment.picture, moment.plan, moment.summary)
    return section


@pytest.mark.parametrize(
    ("number", "look"),
    [(NAMED, Look.NAMED), (NAMED + 1, Look.WIDE), (SHOWN, Look.WIDE), (SHOWN + 1, Look.MANY)],
)
def test_the_number_of_nodes_decides_how_a_pool_is_drawn(number: int, look: Look) -> None:
    section = section_of(moment_of(*(world.make_node(f"n{one}") for one in range(number))))
    (row,) = section.rows
    assert section.look is look
    assert (len(row.cells), bool(row.parts)) == ((0, True) if look is Look.MANY else (number, False))


def test_a_bar_has_every_node_once_and_names_those_that_are_not_warm() -> None:
    """The kubelets of the first half let everyone use what is there; one node is of other processors."""
    old = {"kubelet": "v1.34.4", "images": {world.ref("base"): 5}}
    nodes = [world.make_node(f"n{one}", **(old if one < 150 else {})) for one in range(300)]
    arm = world.make_node("arm", labels={"kubernetes.io/arch": "arm64"})
    (row,) = section_of(moment_of(*nodes, arm)).rows
    pulled, unknown = row.parts
    assert (pulled.state, pulled.number, pulled.nodes) == (State.PULLED, 150, ())
    assert (unknown.state, unknown.number, len(unknown.nodes)) == (State.UNKNOWN, 150, TOLD)
    assert unknown.nodes[:2] == ("n150", "n151")
    assert [(part.begin, part.width) for part in row.parts] == [(0, 50), (50, 50)]


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["b-2.eu.example.org", "b-10.eu.example.org"], ["b-2", "b-10"]),
        (["a.eu.example.org", "a.us.example.org"], ["a.eu.example.org", "a.us.example.org"]),
        (["n1", "n2"], ["n1", "n2"]),
    ],
)
def test_names_of_nodes_lose_only_what_all_of_them_have(names: list[str], short: list[str]) -> None:
    assert [text for _, text in section_of(moment_of(*map(world.make_node, names))).nodes] == short


def test_all_of_it_in_one_line() -> None:
    moment = moment_of(world.make_node("n1"), world.make_node("n2"), world.make_node("n3"))
    assert build_headline(moment.summary) == Headline(
        warm=0, places=3, flying=0, waiting=("2 wait: another node tries first",)
    )
