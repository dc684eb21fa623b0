"""What the catalog wants, and where: selectors, taints, architectures, versions."""

from __future__ import annotations

from typing import Any

import pytest

from hub_ext.catalog.model import Catalog
from services.prepuller.facts import canonical, read_machine
from services.prepuller.manifest import build_pull_pod
from services.prepuller.places import lay_out, tolerations_for
from services.prepuller.reasons import Hold
from services.prepuller.settings import Settings
from services.prepuller.wants import Tier, desire
from tests.unit.prepuller import world


def desired_of(catalog: Catalog, given: Settings | None = None) -> Any:
    return desire(catalog, given or world.settings(), today=world.TODAY)


def images_of(catalog: Catalog, tier: Tier = Tier.REQUIRED, given: Settings | None = None) -> set[str]:
    desired = desired_of(catalog, given)
    best: dict[str, Tier] = {}
    for use in desired.uses:
        best[use.want] = min(use.tier, best.get(use.want, use.tier))
    names = {key: want.image.rpartition("/")[2].partition("@")[0] for key, want in desired.wants.items()}
    return {names[key] for key, found in best.items() if found is tier}


def test_images_go_only_where_their_profiles_go() -> None:
    catalog = world.make_catalog(
        world.make_profile("plain", ["base"], pool="small"),
        world.make_profile("cards", ["torch", "flow"], pool="large"),
        world.make_profile("anywhere", ["docs"]),
        images={name: world.ref(name, "abcd"[i]) for i, name in enumerate(("base", "torch", "flow", "docs"))},
        pools={
            "small": {"nodeSelector": {"type": "highmem-4"}},
            "large": {"nodeSelector": {"type": "highmem-8"}},
        },
    )
    cluster = world.Cluster(
        world.make_node("small-1", labels={"type": "highmem-4"}),
        world.make_node("large-1", labels={"type": "highmem-8"}),
    )
    found = desired_of(catalog)
    layout = lay_out(found, cluster.machines.values())
    by_node: dict[str, set[str]] = {}
    for want, node in layout.places:
        by_node.setdefault(node, set()).add(found.wants[want].image)
    assert by_node == {
        "small-1": {catalog.images["base"].ref, catalog.images["docs"].ref},
        "large-1": {catalog.images[name].ref for name in ("torch", "flow", "docs")},
    }


def test_a_choice_of_machines_wants_the_image_on_all_of_them() -> None:
    machine = {
        "displayName": "Machine",
        "options": {
            "one": {"displayName": "One", "resources": {"pool": "a"}},
            "two": {"displayName": "Two", "resources": {"pool": "b"}},
        },
    }
    catalog = world.make_catalog(
        world.make_profile("p", ["base"], choices={"machine": machine}),
        images={"base": world.ref("base")},
        pools={"a": {"nodeSelector": {"pool": "a"}}, "b": {"nodeSelector": {"pool": "b"}}},
    )
    assert {use.pool for use in desired_of(catalog).uses} == {"a", "b"}


def test_taints_that_admission_tolerates_for_workspaces_are_tolerated_by_pulls() -> None:
    """The catalog names no toleration: `ExtendedResourceToleration` adds it to who asks for the resource."""
    catalog = world.make_catalog(
        world.make_profile("g", ["cuda"], gpu="gpu"),
        images={"cuda": world.ref("cuda")},
        pools={"gpu": {"nodeSelector": {"gpu": "true"}, "gpu": world.EXCLUSIVE}},
    )
    node = world.make_node(
        "gpu-1", labels={"gpu": "true"}, taints=[world.TAINT], allocatable={world.GPU: "8"}
    )
    made = world.Cluster(node).plan(catalog)
    assert world.fetched(made) == {"gpu-1": ["cuda"]}
    fetch = made.fetches[0]
    tolerations = tolerations_for(desired_of(catalog), ["gpu"])
    assert tolerations == [{"key": world.GPU, "operator": "Exists"}]
    pod = build_pull_pod(
        fetch.want, fetch.node, settings=Settings(), tolerations=tolerations, pools=fetch.pools
    )
    asked = [one["resources"] for one in pod["spec"]["containers"] + pod["spec"]["initContainers"]]
    assert all(set(amounts) == {"cpu", "memory"} for one in asked for amounts in one.values())


def test_foreign_taints_keep_images_away() -> None:
    catalog = world.make_catalog(world.make_profile("p", ["base"]), images={"base": world.ref("base")})
    tainted = world.make_node("t", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    assert world.fetched(world.Cluster(tainted, world.make_node("n")).plan(catalog)) == {"n": ["base"]}


def test_each_architecture_gets_its_own_images_and_misfits_are_told_once() -> None:
    catalog = world.make_catalog(
        world.make_profile("arm", ["cuda-arm"], pool="gpu"),
        world.make_profile("intel", ["base"], pool="cpu"),
        world.make_profile("any", ["old"]),
        images={
            "cuda-arm": {"ref": world.ref("cuda-arm", "a"), "architectures": ["arm64"]},
            "base": {"ref": world.ref("base", "b"), "architectures": ["amd64"]},
            "old": {"ref": world.ref("old", "c"), "architectures": ["amd64"]},
        },
        pools={"gpu": {"nodeSelector": {"pu": "gpu"}}, "cpu": {"nodeSelector": {"pu": "cpu"}}},
    )
    nodes = [
        world.make_node("arm1", labels={"pu": "gpu", "kubernetes.io/arch": "arm64"}),
        world.make_node("arm2", labels={"pu": "gpu", "kubernetes.io/arch": "arm64"}),
        world.make_node("x1", labels={"pu": "cpu"}),
    ]
    desired = desired_of(catalog)
    layout = lay_out(desired, map(read_machine, nodes))
    names = {key: want.image.rpartition("/")[2].partition("@")[0] for key, want in desired.wants.items()}
    assert {(names[want], node) for want, node in layout.places} == {
        ("cuda-arm", "arm1"),
        ("cuda-arm", "arm2"),
        ("base", "x1"),
        ("old", "x1"),
    }
    assert {(names[want], pool, *arches) for (want, pool), arches in layout.misfits.items()} == {
        ("old", "", "arm64")
    }


def test_a_pool_of_gpus_without_a_selector_means_nodes_that_offer_them() -> None:
    catalog = world.make_catalog(
        world.make_profile("g", ["cuda"], gpu="gpu"),
        images={"cuda": world.ref("cuda")},
        pools={"gpu": {"gpu": world.EXCLUSIVE}},
    )
    cluster = world.Cluster(world.make_node("cpu"), world.make_node("gpu", allocatable={world.GPU: "1"}))
    assert world.fetched(cluster.plan(catalog)) == {"gpu": ["cuda"]}


def taint(condition: str) -> dict[str, str]:
    """What Kubernetes puts on a node in that condition."""
    return {"key": f"node.kubernetes.io/{condition}", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("more", "hold"),
    [
        ({"ready": "False", "taints": [taint("not-ready")]}, Hold.NODE_NOT_READY),
        ({"ready": "Unknown", "taints": [taint("unreachable")]}, Hold.NODE_NOT_READY),
        ({"taints": [taint("network-unavailable")]}, Hold.NODE_NOT_READY),
        ({"unschedulable": True, "taints": [taint("unschedulable")]}, Hold.NODE_CORDONED),
        (
            {
                "conditions": [{"type": "DiskPressure", "status": "True"}],
                "taints": [taint("disk-pressure")],
            },
            Hold.DISK_PRESSURE,
        ),
    ],
    ids=["not-ready", "silent", "no-network", "cordoned", "disk"],
)
def test_nodes_that_take_nothing_now_are_waited_for(more: dict[str, Any], hold: Hold) -> None:
    """They keep their place, so that nothing of them is let go meanwhile."""
    catalog = world.make_catalog(world.make_profile("p", ["base"]), images={"base": world.ref("base")})
    made = world.Cluster(world.make_node("n", **more)).plan(catalog)
    assert (made.fetches, [wait.hold for wait in made.waits.values()]) == ((), [hold])


VERSIONS = {
    "v1": {"version": 1, "state": "retired", "replacedBy": 3},
    "v2": {"version": 2, "state": "retired", "replacedBy": 3},
    "v3": {"version": 3, "state": "deprecated", "replacedBy": 4, "until": "2027-01-31"},
    "v4": {"version": 4},
    "v5": {"version": 5, "state": "hidden"},
    "v6": {"version": 6, "state": "deprecated", "until": "2027-01-31", "message": "ends soon"},
    "v7": {"version": 7, "state": "deprecated", "until": "2026-11-29", "replacedBy": 4},
}


@pytest.fixture
def versions() -> Catalog:
    profiles = [world.make_profile("p", [key], **more) for key, more in VERSIONS.items()]
    return world.make_catalog(
        *profiles, images={key: world.ref(key, f"{number:x}") for number, key in enumerate(VERSIONS)}
    )


def test_what_can_be_started_is_required(versions: Catalog) -> None:
    assert images_of(versions) == {"v4", "v5", "v6"}


def test_what_one_may_go_back_to_is_kept_and_not_fetched(versions: Catalog) -> None:
    # v7 retired yesterday and is the newest of the retired ones; v3 can still be asked for by number.
    assert images_of(versions, Tier.KEPT) == {"v3", "v7"}
    none = world.settings(release={"keepPrevious": 0})
    assert images_of(versions, Tier.KEPT, none) == {"v3"}
    made = world.Cluster(world.make_node("n")).plan(versions)
    assert {name for names in world.fetched(made).values() for name in names} <= {"v4", "v5", "v6"}


def test_profiles_can_be_left_out(versions: Catalog) -> None:
    given = world.settings(skip=["p"])
    assert desired_of(versions, given).uses == ()
    both = world.make_catalog(
        world.make_profile("seldom", ["a", "b"]),
        world.make_profile("often", ["b"]),
        images={"a": world.ref("a", "a"), "b": world.ref("b", "b")},
    )
    assert images_of(both, given=world.settings(skip=["seldom"])) == {"b"}


def test_extra_images_go_to_the_pools_they_name_or_to_all() -> None:
    catalog = world.make_catalog(
        world.make_profile("one", ["base"], pool="a"),
        world.make_profile("two", ["base"], pool="b"),
        images={"base": world.ref("base")},
        pools={"a": {"nodeSelector": {"pool": "a"}}, "b": {"nodeSelector": {"pool": "b"}}},
    )
    given = world.settings(
        extraImages=[
            {"ref": world.ref("network-tools", "e")},
            {"ref": world.ref("sidecar", "f"), "pools": ["b"], "pullSecrets": ["extra"]},
        ],
        shared={"pullSecrets": ["hub"], "images": [world.ref("sidecar-of-all", "d")]},
    )
    desired = desired_of(catalog, given)
    pools: dict[str, set[str]] = {}
    for use in desired.uses:
        pools.setdefault(desired.wants[use.want].image.rpartition("/")[2].partition("@")[0], set()).add(
            use.pool
        )
    everywhere = {key: {"a", "b"} for key in ("base", "network-tools", "sidecar-of-all")}
    assert pools == {**everywhere, "sidecar": {"b"}}
    secrets = {
        want.image.rpartition("/")[2].partition("@")[0]: want.secrets for want in desired.wants.values()
    }
    assert secrets == {**dict.fromkeys(everywhere, ("hub",)), "sidecar": ("extra", "hub")}


def test_a_misspelt_pool_of_an_extra_image_means_no_pool_and_is_told() -> None:
    catalog = world.make_catalog(
        world.make_profile("one", ["base"], pool="gpu-a"),
        images={"base": world.ref("base")},
        pools={"gpu-a": {"nodeSelector": {"pool": "a"}}},
    )
    given = world.settings(
        extraImages=[{"ref": world.ref("x", "e"), "pools": ["gpu-b"]}],
        skip=["onne"],
        schedule=[{"profile": "two", "at": "09:00", "seats": 3}],
    )
    desired = desired_of(catalog, given)
    assert {use.profile for use in desired.uses} == {"one@1"}
    assert [(one.key, one.name, one.known) for one in desired.strays] == [
        ("skip", "onne", ("one",)),
        ("schedule[0].profile", "two", ("one",)),
        ("extraImages[0].pools", "gpu-b", ("gpu-a",)),
    ]


DEDICATED = {"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}


def test_what_the_hub_gives_all_workspaces_counts_for_pulls_too() -> None:
    """The chart has all workspaces tolerate the taint of its user nodes, and may keep them to those nodes."""
    catalog = world.make_catalog(
        world.make_profile("plain", ["base"]),
        world.make_profile("cards", ["torch"], pool="gpu"),
        images={"base": world.ref("base", "a"), "torch": world.ref("torch", "b")},
        pools={"gpu": {"nodeSelector": {"purpose": "gpu"}}},
    )
    nodes = [
        world.make_node("core", labels={"purpose": "core"}),
        world.make_node("user", labels={"purpose": "user"}, taints=[DEDICATED]),
        world.make_node("gpu", labels={"purpose": "gpu"}, taints=[DEDICATED]),
    ]
    assert world.fetched(world.Cluster(*nodes).plan(catalog)) == {"core": ["base"]}
    given = world.settings(shared={"tolerations": [DEDICATED], "nodeSelector": {"purpose": "user"}})
    made = world.Cluster(*nodes).plan(catalog, given)
    assert world.fetched(made) == {"user": ["base"], "gpu": ["torch"]}
    (found,) = tolerations_for(desired_of(catalog, given), ["gpu"])
    assert found == {**DEDICATED, "operator": "Equal"}


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("python:3.13", "docker.io/library/python:3.13"),
        ("python", "docker.io/library/python:latest"),
        ("org/img:1", "docker.io/org/img:1"),
        ("docker.io/python:3.13", "docker.io/library/python:3.13"),
        ("index.docker.io/python", "docker.io/library/python:latest"),
        ("index.docker.io/org/img:1", "docker.io/org/img:1"),
        ("localhost/img", "localhost/img:latest"),
        ("quay.io/img", "quay.io/img:latest"),
        ("registry.example.org:5000/team/img", "registry.example.org:5000/team/img:latest"),
        (f"quay.io/org/img:2026.10@{world.digest('a')}", f"quay.io/org/img@{world.digest('a')}"),
        ("IMG:1", "IMG:1"),
    ],
)
def test_references_are_compared_in_one_spelling(written: str, listed: str) -> None:
    assert canonical(written) == listed
    assert canonical(listed) == listed


def test_a_longer_tag_is_another_image() -> None:
    assert canonical("r.example.org/img:1.2") != canonical("r.example.org/img:1.20")
