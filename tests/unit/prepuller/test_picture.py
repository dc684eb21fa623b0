"""What counts as warm: for whom, by which evidence, and what is only guessed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hub_ext.catalog.model import Catalog
from services.prepuller.picture import SETTLE, Sight
from services.prepuller.pods import PullPod, Step
from services.prepuller.reasons import Evidence, Reason, Removal, State
from services.prepuller.wants import desire, make_want
from tests.unit.prepuller import world

IMAGE = world.ref("torch")
SMALL = {f"registry.example.org/other{number}:1": 10**9 - number for number in range(49)}


@pytest.fixture
def catalog() -> Catalog:
    return world.make_catalog(world.make_profile("p", ["torch"]), images={"torch": IMAGE})


def pod_of(node: str = "n", *, secrets: tuple[str, ...] = (), step: Step = Step.DONE, **more: Any) -> PullPod:
    want = make_want(IMAGE, secrets)
    return PullPod(
        uid=f"{want.id}-{node}",
        name=f"{want.id}-{node}",
        node=node,
        want=want.id,
        image=IMAGE,
        step=step,
        since=world.NOW,
        created=world.NOW,
        **more,
    )


def sight(cluster: world.Cluster, catalog: Catalog) -> Sight:
    given = world.settings()
    (found,) = cluster.picture(desire(catalog, given, today=world.TODAY), given).sights.values()
    return found


@pytest.mark.parametrize(
    ("images", "state", "evidence"),
    [
        ({}, State.UNKNOWN, Evidence.NO_LIST),
        ({IMAGE: 5, "pause:1": 1}, State.UNKNOWN, Evidence.LISTED_FOR_OTHERS),
        ({"pause:1": 1}, State.ABSENT, Evidence.NOT_LISTED),
        ({**SMALL, "pause:1": 1}, State.UNKNOWN, Evidence.LIST_CUT),
        (SMALL, State.ABSENT, Evidence.NOT_LISTED),
        ({world.ref("torch", "b"): 5}, State.ABSENT, Evidence.NOT_LISTED),
    ],
    ids=["nothing", "listed", "absent", "full", "nearly-full", "other-digest"],
)
def test_what_a_list_of_images_tells(
    catalog: Catalog, images: dict[str, int], state: State, evidence: Evidence
) -> None:
    found = sight(world.Cluster(world.make_node("n", images=images)), catalog)
    assert (found.state, found.evidence, found.pinned) == (state, evidence, False)


def test_older_kubelets_let_everyone_use_what_is_there(catalog: Catalog) -> None:
    node = world.make_node("n", images={IMAGE: 5}, kubelet="v1.34.4")
    assert sight(world.Cluster(node), catalog).state is State.PULLED


def test_what_another_secret_fetched_is_not_warm_for_the_workspace(catalog: Catalog) -> None:
    """The prepuller once pulled with a secret; workspaces have none (KEP-2535)."""
    cluster = world.Cluster(world.make_node("n", images={IMAGE: 5}))
    pod = pod_of(secrets=("prepull-only",))
    cluster.pods[pod.name] = pod
    assert sight(cluster, catalog).state is State.UNKNOWN
    made = cluster.plan(catalog)
    assert [(one.node, one.want.secrets) for one in made.fetches] == [("n", ())]


def test_the_pod_of_the_same_credentials_is_the_proof(catalog: Catalog) -> None:
    cluster = world.Cluster(world.make_node("n", images=SMALL))
    cluster.pods["x"] = pod_of()
    found = sight(cluster, catalog)
    assert (found.state, found.evidence, found.pinned) == (State.PULLED, Evidence.POD, True)
    assert cluster.plan(catalog).fetches == ()


def test_an_image_that_left_a_whole_list_is_fetched_again(catalog: Catalog) -> None:
    cluster = world.Cluster(world.make_node("n", images={"pause:1": 1}))
    cluster.pods["x"] = pod_of()
    assert sight(cluster, catalog).state is State.PULLED, "the list may be from before the pull"
    cluster.now += SETTLE + timedelta(seconds=1)
    assert sight(cluster, catalog).state is State.ABSENT
    made = cluster.plan(catalog)
    assert [(drop.why, drop.pod.name) for drop in made.drops] == [(Removal.GONE, "" + pod_of().name)]
    assert made.fetches == (), "the pod of that name has to go first"
    cluster.pods.clear()
    assert len(cluster.plan(catalog).fetches) == 1


@pytest.mark.parametrize("images", [{}, {**SMALL, "pause:1": 1}], ids=["no-list", "full-list"])
def test_a_list_that_may_be_cut_proves_nothing(catalog: Catalog, images: dict[str, int]) -> None:
    cluster = world.Cluster(world.make_node("n", images=images))
    cluster.pods["x"] = pod_of()
    cluster.now += 10 * SETTLE
    assert sight(cluster, catalog).state is State.PULLED


def test_a_list_that_spells_the_image_otherwise_is_not_believed_twice(catalog: Catalog) -> None:
    """A registry mirror may have it listed by another name: the pull found it present all the same."""
    cluster = world.Cluster(world.make_node("n", images={"mirror.example.org/torch:1": 5}))
    cluster.pods["x"] = pod_of(present=True)
    cluster.now += 10 * SETTLE
    assert sight(cluster, catalog).state is State.PULLED
    assert cluster.plan(catalog).drops == ()


def test_pulling_and_failing_pods_are_what_they_are(catalog: Catalog) -> None:
    cluster = world.Cluster(world.make_node("n"))
    cluster.pods["x"] = pod_of(step=Step.PULLING)
    assert sight(cluster, catalog).state is State.PULLING
    cluster.pods["x"] = pod_of(step=Step.FAILED, reason=Reason.IMAGE_NOT_FOUND, detail="not found")
    found = sight(cluster, catalog)
    assert (found.state, found.reason, found.detail) == (State.FAILED, Reason.IMAGE_NOT_FOUND, "not found")


def test_a_failure_is_told_until_the_next_try(catalog: Catalog) -> None:
    cluster = world.Cluster(world.make_node("n"))
    cluster.pods["x"] = pod_of(step=Step.FAILED, reason=Reason.IMAGE_ACCESS, detail="denied")
    assert [drop.why for drop in cluster.plan(catalog).drops] == [Removal.FAILED]
    cluster.pods.clear()
    found = sight(cluster, catalog)
    assert (found.state, found.reason, found.since) == (State.FAILED, Reason.IMAGE_ACCESS, world.NOW)


@pytest.mark.parametrize(
    ("step", "after", "reason"),
    [
        (Step.WAITING, timedelta(minutes=1), Reason.NO_ROOM),
        (Step.PULLING, timedelta(minutes=45), Reason.TIMEOUT),
    ],
)
def test_what_takes_too_long_is_given_up(
    catalog: Catalog, step: Step, after: timedelta, reason: Reason
) -> None:
    cluster = world.Cluster(world.make_node("n"))
    cluster.pods["x"] = pod_of(step=step)
    cluster.now += after
    assert sight(cluster, catalog).state is State.PULLING
    cluster.now += timedelta(seconds=1)
    assert sight(cluster, catalog).reason is reason
    (drop,) = cluster.plan(catalog).drops
    assert drop.pod.in_flight, "its node may still be fetching"


def test_a_pod_that_is_going_is_no_pin_and_blocks_its_place(catalog: Catalog) -> None:
    cluster = world.Cluster(world.make_node("n"))
    cluster.pods["x"] = replace(pod_of(), ending=True)
    assert not sight(cluster, catalog).pinned
    made = cluster.plan(catalog)
    assert (made.fetches, made.drops) == ((), ())
