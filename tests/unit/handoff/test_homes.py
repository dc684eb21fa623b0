"""The home as the source: mounted only where a run can start with it."""

from __future__ import annotations

from typing import Any

import pytest

from services.job_handoff.home import HomeFacts, judge_home
from services.job_handoff.verdicts import RunRefusedError
from tests.fakes.kube import FakeKube

from .conftest import World, body, claim_for_test

HOME = {"type": "home", "folder": "project"}


async def submit(world: World, **changes: Any) -> Any:
    return await world.service.desk.submit("ada", body(source=HOME, **changes))


async def refusal(world: World, **changes: Any) -> RunRefusedError:
    with pytest.raises(RunRefusedError) as error:
        await world.service.desk.submit("ada", body(source=HOME, **changes), dry_run=True)
    with pytest.raises(RunRefusedError) as again:
        await submit(world, **changes)
    assert error.value.as_dict() == again.value.as_dict()
    assert (error.value.reason, error.value.field) == ("home-not-mountable", "source")
    assert "Send a snapshot of the folder instead" in error.value.message
    assert world.kube.all_for_test("cronjobs") == []
    return error.value


def volume(name: str, *zones: str, key: str = "topology.kubernetes.io/zone") -> dict[str, Any]:
    rule = {"key": key, "operator": "In", "values": list(zones)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"nodeAffinity": {"required": required}} if zones else {},
    }


def node(name: str, zone: str, *, pool: str = "cpu", **spec: Any) -> dict[str, Any]:
    labels = {"pool": pool} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"conditions": conditions, "allocatable": {"cpu": "8", "memory": "32Gi"}},
    }


def put(world: World, *objects: dict[str, Any]) -> None:
    for one in objects:
        world.kube.put_for_test(one)


HERE = claim_for_test("homes", "ReadWriteMany", volume="disk")


async def test_a_home_in_a_zone_without_nodes_for_the_run_is_refused_with_both_zones(world: World) -> None:
    put(world, HERE, volume("disk", "zone-c"), node("a", "zone-a"), node("b", "zone-b"))
    put(world, node("gpu", "zone-c", pool="cards"))
    error = await refusal(world)
    assert error.message.startswith(
        "Your home is in zone-c; this run's machines are in zone-a and zone-b, so it could never start."
    )


PRESSED = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
KEPT = [{"key": "dedicated", "value": "others", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    "there",
    [
        [],
        [node("a", "zone-a"), node("c", "zone-c")],
        [node("a", "")],
        [node("a", "zone-a"), node("c", "zone-c", unschedulable=True)],
        [node("a", "zone-a"), node("c", "zone-c", taints=PRESSED)],
    ],
    ids=["none are there", "one is there", "a zone is not known", "one is cordoned", "one is away"],
)
async def test_what_is_not_certain_refuses_nothing(world: World, there: list[dict[str, Any]]) -> None:
    put(world, HERE, volume("disk", "zone-c"), *there)
    assert (await submit(world)).created


async def test_a_node_that_is_kept_for_others_does_not_count(world: World) -> None:
    put(world, HERE, volume("disk", "zone-c"), node("a", "zone-a"), node("c", "zone-c", taints=KEPT))
    await refusal(world)


@pytest.mark.parametrize("disk", [volume("disk"), volume("other", "zone-c")], ids=["anywhere", "not there"])
async def test_a_volume_that_goes_anywhere_goes_to_the_run(world: World, disk: dict[str, Any]) -> None:
    put(world, HERE, disk, node("a", "zone-a"))
    assert (await submit(world)).created


@pytest.mark.parametrize(
    ("group", "resource"),
    [("", "persistentvolumeclaims"), ("", "persistentvolumes"), ("", "nodes")],
)
async def test_an_account_that_may_not_look_refuses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, group: str, resource: str
) -> None:
    put(world, HERE, volume("disk", "zone-c"), node("a", "zone-a"))
    begin = FakeKube._begin

    def denied(self: FakeKube, verb: str, path: str) -> Any:
        if f"/{resource}" in path:
            raise self._refuse(path, 403, "Forbidden", f'cannot {verb} resource "{resource}"')
        return begin(self, verb, path)

    monkeypatch.setattr(FakeKube, "_begin", denied)
    assert (await submit(world)).created


async def test_a_claim_that_is_not_there_is_refused(world: World) -> None:
    world.kube.drop_for_test("/api/v1/namespaces/runs/persistentvolumeclaims/homes")
    assert "does not exist where runs are" in (await refusal(world)).message


async def test_a_volume_that_is_gone_is_refused(world: World) -> None:
    put(world, claim_for_test("homes", "ReadWriteMany", phase="Lost"))
    assert "is gone" in (await refusal(world)).message


@pytest.mark.parametrize(
    ("mode", "whom"), [("ReadWriteOnce", "on one node"), ("ReadWriteOncePod", "by one pod")]
)
async def test_the_claim_s_own_mode_counts_and_not_what_the_catalog_says(
    world: World, mode: str, whom: str
) -> None:
    put(world, claim_for_test("homes", mode))
    world.hub.add_server("ada", options={"profile": "cpu"})
    error = await refusal(world)
    assert whom in error.message
    assert "your server has it" in error.message


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteOncePod"])
async def test_two_runs_do_not_fight_for_a_home_of_one_node(world: World, mode: str) -> None:
    """The second would be admitted, and hang with its quota taken until it is given up."""
    put(world, claim_for_test("homes", mode))
    first = (await submit(world)).record.id
    assert "another run has it or waits for it" in (await refusal(world, key="second")).message
    world.kube.end_for_test(first)
    assert (await submit(world, key="second")).created


async def test_runs_share_a_home_of_many_nodes(world: World) -> None:
    world.hub.add_server("ada", options={"profile": "cpu"})
    assert (await submit(world)).created
    assert (await submit(world, key="second")).created


@pytest.mark.parametrize("changes", [{"profile": "ray", "nodes": 2}, {"profile": "ray"}])
async def test_a_run_of_several_pods_has_no_home_of_one_node(world: World, changes: dict[str, Any]) -> None:
    put(world, claim_for_test("homes", "ReadWriteOnce"))
    error = await refusal(world, **changes)
    assert f"this run has {changes.get('nodes', 1) + 1} pods" in error.message


def test_a_zone_to_which_nodes_are_added_is_told_and_refuses_nothing() -> None:
    facts = HomeFacts(
        found=True, zones=frozenset({"c"}), node_zones=frozenset({"a"}), scales=True, modes=("ReadWriteMany",)
    )
    verdict = judge_home("ReadWriteMany", running=False, facts=facts)
    assert verdict.mount
    assert verdict.text == (
        "Your home is in c; this run's machines are in a. It starts only if a machine can be added in c."
    )
