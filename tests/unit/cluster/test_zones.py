"""Homes and nodes in zones: what is certain is said before a start, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.nodes import read_node
from hub_ext.cluster.offer import Offer, Rules, View, judge
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.supplies import Supplies
from hub_ext.cluster.zones import zones_of_nodes, zones_of_volume
from hub_ext.quota.demand import weights_of
from hub_ext.quota.usage import Usage
from hub_ext.selection import Selection, select
from tests.fakes.workspaces import ADA, TEXT, TODAY
from tests.unit.cluster.objects import GPU, NOW, make_node

ZONE = "topology.kubernetes.io/zone"
ELSEWHERE = frozenset({"zone-c"})


def term(*rules: tuple[str, str, list[str]]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": how, "values": of} for key, how, of in rules]}


@pytest.mark.parametrize(
    ("terms", "labels", "zones"),
    [
        ([term((ZONE, "In", ["zone-c"]))], {}, {"zone-c"}),
        ([term(("topology.ebs.csi.aws.com/zone", "In", ["eu-1a"]))], {}, {"eu-1a"}),
        ([term(("failure-domain.beta.kubernetes.io/zone", "In", ["a", "b"]))], {}, {"a", "b"}),
        ([term((ZONE, "In", ["a"])), term((ZONE, "In", ["b"]))], {}, {"a", "b"}),
        ([term((ZONE, "In", ["a"])), term(("kubernetes.io/arch", "In", ["amd64"]))], {}, set()),
        ([term((ZONE, "NotIn", ["a"]))], {}, set()),
        ([term(("topology.disk.csi.azure.com/zone", "In", [""]))], {}, set()),
        ([term(("kubernetes.io/hostname", "In", ["n1"]))], {ZONE: "a"}, set()),
        ([], {ZONE: "a"}, {"a"}),
        ([], {"failure-domain.beta.kubernetes.io/zone": "a__b"}, {"a", "b"}),
        ([], {}, set()),
    ],
)
def test_where_a_volume_can_be_attached(
    terms: list[dict[str, Any]], labels: dict[str, str], zones: set[str]
) -> None:
    volume: dict[str, Any] = {"metadata": {"labels": labels}, "spec": {}}
    if terms:
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    assert zones_of_volume(volume) == zones
    assert zones_of_volume({}) == frozenset()


def test_a_node_that_does_not_say_its_zone_may_be_in_any() -> None:
    named, unnamed = read_node(make_node(labels={ZONE: "a"})), read_node(make_node("n2"))
    assert zones_of_nodes([named]) == {"a"}
    assert zones_of_nodes([named, unnamed]) == frozenset()
    assert zones_of_nodes([]) == frozenset()


def offered(*zones: str, home: frozenset[str] = ELSEWHERE, scale_up: str = "", seen: bool = True) -> Offer:
    """Judge one full card on nodes of some zones, for a user with a home."""
    raw = yaml.safe_load(TEXT)
    if scale_up:
        raw["pools"]["h200"]["scaleUp"] = scale_up
    catalog = load_catalog(raw)
    state = ClusterState(weights_of(catalog))
    if seen:
        state.seen(Kind.NODES)
    for number, zone in enumerate(zones):
        labels = {"pool": "h200", **({ZONE: zone} if zone else {})}
        state.put(Kind.NODES, make_node(f"n{number}", labels=labels, allocatable={GPU: "8"}), NOW)
    chosen = select(catalog, ADA, {"profile": "full"}, today=TODAY)
    assert isinstance(chosen, Selection)
    view = View(snapshot=state.snapshot(NOW), supplies=Supplies(), home_zones=home)
    rules = Rules(catalog=catalog, weights=weights_of(catalog))
    return judge(chosen.workspace, "nlp", rules=rules, usage=Usage(), view=view)


def test_a_home_where_a_workspace_has_no_machines_is_told_and_nothing_is_forbidden() -> None:
    offer = offered("zone-b", "zone-a", "zone-a")
    assert offer.warning == (
        "Your home is in zone-c; this workspace's machines are in zone-a and zone-b. "
        "It cannot start with this home."
    )
    assert offer.allowed
    growing = offered("zone-a", scale_up="3m")
    assert growing.warning.endswith("It starts only if a machine can be added in zone-c.")


@pytest.mark.parametrize(
    ("zones", "how"),
    [
        (["zone-a"], {"home": frozenset()}),
        (["zone-a", "zone-c"], {}),
        (["zone-a", ""], {}),
        ([], {}),
        (["zone-a"], {"seen": False}),
        (["zone-a"], {"home": frozenset({"zone-a", "zone-c"})}),
    ],
    ids=["no home", "one there", "one may be there", "no nodes", "nodes unseen", "two zones"],
)
def test_what_is_not_certain_is_not_told(zones: list[str], how: dict[str, Any]) -> None:
    assert offered(*zones, **how).warning == ""
