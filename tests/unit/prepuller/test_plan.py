"""What is fetched first, what waits for whom, and what is let go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from hub_ext.catalog.model import Catalog
from hub_ext.cluster.starts import Outcome, StartRecord
from services.prepuller.benefit import count_starts, is_near
from services.prepuller.gate import Outcome as GateOutcome
from services.prepuller.gate import Question, judge
from services.prepuller.plan import Plan
from services.prepuller.pods import PullPod, Step
from services.prepuller.reasons import BLAMES, Blame, Hold, Reason, Removal
from services.prepuller.settings import Seats, Settings
from services.prepuller.summary import summarize
from services.prepuller.wants import make_want
from tests.unit.prepuller import world

IMAGES = {key: world.ref(key, letter) for key, letter in (("base", "a"), ("torch", "b"), ("flow", "c"))}
NAMES = list(IMAGES)


def catalog_of(names: Sequence[str] = NAMES, **more: Any) -> Catalog:
    profiles = [world.make_profile(f"p-{name}", [name]) for name in names]
    return world.make_catalog(*profiles, images={name: IMAGES[name] for name in names}, **more)


def nodes(number: int, **more: Any) -> list[dict[str, Any]]:
    return [world.make_node(f"n{one}", **more) for one in range(number)]


def pod_of(name: str, node: str, *, step: Step = Step.DONE, **more: Any) -> PullPod:
    want = make_want(IMAGES[name])
    found = PullPod(
        uid=f"{name}-{node}",
        name=f"{name}-{node}",
        node=node,
        want=want.id,
        image=want.image,
        step=step,
        since=world.NOW,
        created=world.NOW,
    )
    return replace(found, **more)


def holds(made: Plan) -> set[Hold]:
    return {wait.hold for wait in made.waits.values()}


def test_one_node_tries_first_and_the_others_follow() -> None:
    cluster, catalog = world.Cluster(*nodes(3)), catalog_of(["base"])
    made = cluster.plan(catalog)
    assert world.fetched(made) == {"n0": ["base"]}
    assert holds(made) == {Hold.CANARY}
    cluster.pods["x"] = pod_of("base", "n0", step=Step.PULLING)
    assert cluster.plan(catalog).fetches == ()
    cluster.pods["x"] = pod_of("base", "n0")
    assert world.fetched(cluster.plan(catalog)) == {"n1": ["base"], "n2": ["base"]}
    eager = world.settings(limits={"canary": False})
    cluster.pods.clear()
    assert len(cluster.plan(catalog, eager).fetches) == 3


def test_a_first_pull_that_goes_well_for_long_is_not_waited_for() -> None:
    """Ten gigabytes take minutes; that the registry has no such image it says in a second."""
    cluster, catalog = world.Cluster(*nodes(3)), catalog_of(["base"])
    cluster.pods["x"] = pod_of("base", "n0", step=Step.PULLING, begun=world.NOW)
    cluster.now += timedelta(seconds=59)
    assert cluster.plan(catalog).fetches == ()
    cluster.now += timedelta(seconds=1)
    assert world.fetched(cluster.plan(catalog)) == {"n1": ["base"], "n2": ["base"]}


@pytest.mark.parametrize(
    "more",
    [{}, {"begun": world.NOW + timedelta(seconds=30)}],
    ids=["not-begun", "begun-late"],
)
def test_a_first_pull_that_has_not_shown_anything_is_waited_for(more: Mapping[str, Any]) -> None:
    cluster = world.Cluster(*nodes(3))
    cluster.pods["x"] = pod_of("base", "n0", step=Step.PULLING, **more)
    cluster.now += timedelta(seconds=61)
    made = cluster.plan(catalog_of(["base"]))
    assert (made.fetches, holds(made)) == ((), {Hold.CANARY})


@pytest.mark.parametrize(
    ("more", "ready"), [({"ending": True}, "True"), ({}, "Unknown")], ids=["given-up", "silent-node"]
)
def test_a_first_pull_that_can_show_nothing_any_more_is_not_waited_for(
    more: Mapping[str, Any], ready: str
) -> None:
    """Its node hangs, or lost its power: pods there stay until somebody removes the node."""
    cluster = world.Cluster(world.make_node("n0", ready=ready), *nodes(3)[1:])
    cluster.pods["x"] = pod_of("base", "n0", step=Step.PULLING, **more)
    made = cluster.plan(catalog_of(["base"]))
    assert world.fetched(made) == {"n1": ["base"]}


def test_a_registry_is_tried_again_though_a_pull_from_it_went_down_with_its_node() -> None:
    cluster = world.Cluster(world.make_node("n0", ready="Unknown"), *nodes(3)[1:])
    catalog = catalog_of(["base", "torch"])
    cluster.pods["x"] = pod_of("torch", "n0", step=Step.PULLING, begun=world.NOW)
    fail(cluster, "base", "n1", Reason.REGISTRY_BUSY)
    cluster.plan(catalog)
    del cluster.pods[pod_of("base", "n1").name]
    cluster.now += timedelta(minutes=2)
    assert len(cluster.plan(catalog).fetches) == 1


def test_pulls_that_were_lost_with_their_nodes_take_no_room_from_others() -> None:
    lost = [world.make_node(f"n{one}", ready="Unknown") for one in range(3)]
    cluster = world.Cluster(*lost, world.make_node("n3"))
    cluster.pods = {f"p{one}": pod_of("base", f"n{one}", step=Step.PULLING) for one in range(3)}
    given = world.settings(limits={"total": 3, "perPool": 3, "perRegistry": 3})
    made = cluster.plan(catalog_of(["base"]), given)
    assert holds(made) == {Hold.TOTAL_LIMIT}, "they may only be out of reach, and still be fetching"
    cluster.now += given.limits.timeout + timedelta(seconds=1)
    assert world.fetched(cluster.plan(catalog_of(["torch"]), given)) == {"n3": ["torch"]}


def test_a_node_fetches_one_image_at_a_time() -> None:
    cluster = world.Cluster(*nodes(2))
    made = cluster.plan(catalog_of())
    assert world.fetched(made) == {"n0": ["base"], "n1": ["torch"]}
    assert Hold.NODE_BUSY in holds(made)


@pytest.mark.parametrize(
    ("limits", "hold"),
    [
        ({"total": 2}, Hold.TOTAL_LIMIT),
        ({"perPool": 2}, Hold.POOL_LIMIT),
        ({"perRegistry": 2}, Hold.REGISTRY_LIMIT),
        ({"registries": {world.REGISTRY: 2}}, Hold.REGISTRY_LIMIT),
        ({"pins": 2}, Hold.PINS_FULL),
    ],
)
def test_each_limit_is_named_when_it_holds_back(limits: Mapping[str, Any], hold: Hold) -> None:
    given = world.settings(limits={"canary": False, **limits})
    made = world.Cluster(*nodes(5)).plan(catalog_of(["base"]), given)
    assert len(made.fetches) == 2
    assert holds(made) == {hold}


def test_what_is_preselected_comes_first_then_what_is_used_most() -> None:
    catalog = catalog_of(defaults={"profile": "p-flow"})
    one = world.Cluster(*nodes(1))
    assert world.fetched(one.plan(catalog)) == {"n0": ["flow"]}
    used = {("p-torch", "", "torch"): 11}
    assert world.fetched(one.plan(catalog, starts=used)) == {"n0": ["torch"]}
    assert one.plan(catalog, starts=used).fetches[0].benefit == 11


def test_a_class_that_is_near_comes_before_all_else() -> None:
    given = world.settings(schedule=[{"profile": "p-flow", "weekdays": ["mon"], "at": "09:00", "seats": 80}])
    assert world.fetched(world.Cluster(*nodes(1)).plan(catalog_of(), given)) == {"n0": ["flow"]}


@pytest.mark.parametrize(
    ("hour", "minute", "near"),
    [(6, 59, False), (7, 0, True), (9, 59, True), (10, 0, False)],
)
def test_a_class_is_near_from_its_lead_to_an_hour_after(hour: int, minute: int, near: bool) -> None:
    seats = Seats(profile="p", weekdays=("mon",), at=time(9), seats=1)
    assert is_near(seats, datetime(2026, 11, 30, hour, minute, tzinfo=UTC)) is near
    assert not is_near(seats, datetime(2026, 12, 1, hour, minute, tzinfo=UTC))


def test_a_class_after_midnight_is_near_the_evening_before_in_its_own_zone() -> None:
    seats = Seats(profile="p", weekdays=("tue",), at=time(0, 30), seats=1, zone="Europe/Berlin")
    # Monday 23:00 in Berlin is 22:00 UTC in winter.
    assert is_near(seats, datetime(2026, 11, 30, 22, 0, tzinfo=UTC))
    assert not is_near(seats, datetime(2026, 11, 30, 21, 0, tzinfo=UTC))


def test_only_recent_starts_count() -> None:
    def started(days: float) -> StartRecord:
        return StartRecord(
            at=world.NOW - timedelta(days=days),
            profile="p",
            version=1,
            pool="gpu",
            outcome=Outcome.STARTED,
            seconds=1,
            image="base",
        )

    records = [started(1), started(13), started(15), started(-1)]
    assert count_starts(records, world.NOW) == {("p", "gpu", "base"): 2}


def fail(cluster: world.Cluster, name: str, node: str, reason: Reason) -> None:
    uid = f"{name}{node}{cluster.now}"
    pod = pod_of(name, node, step=Step.FAILED, reason=reason, uid=uid, created=cluster.now)
    cluster.pods[pod.name] = pod


def test_a_bad_image_is_tried_by_one_node_at_a_time_longer_and_longer_apart() -> None:
    cluster, catalog = world.Cluster(*nodes(20)), catalog_of(["base"])
    gaps, last = [], None
    for _ in range(200):
        made = cluster.plan(catalog)
        cluster.pods.clear()
        assert len(made.fetches) <= 1
        if made.fetches:
            gaps.append(cluster.now - last if last else None)
            last = cluster.now
            fail(cluster, "base", made.fetches[0].node, Reason.IMAGE_NOT_FOUND)
        cluster.now += timedelta(seconds=30)
    waits = [gap.total_seconds() for gap in gaps[1:] if gap]
    assert waits == sorted(waits)
    assert waits[0] <= 60
    assert max(waits) <= 31 * 60


def test_a_good_image_does_not_wait_for_a_bad_one() -> None:
    cluster, catalog = world.Cluster(*nodes(1)), catalog_of(["base", "torch"])
    fail(cluster, "base", "n0", Reason.IMAGE_NOT_FOUND)
    cluster.plan(catalog)
    cluster.pods.clear()
    assert world.fetched(cluster.plan(catalog)) == {"n0": ["torch"]}


def test_a_registry_that_limits_is_left_alone_as_a_whole() -> None:
    cluster, catalog = world.Cluster(*nodes(3)), catalog_of()
    fail(cluster, "base", "n0", Reason.REGISTRY_BUSY)
    cluster.plan(catalog)
    cluster.pods.clear()
    made = cluster.plan(catalog)
    assert (made.fetches, holds(made)) == ((), {Hold.BACKOFF})
    cluster.now += timedelta(seconds=30)
    assert len(cluster.plan(catalog).fetches) == 1, "one tries before the others"


def test_a_full_node_keeps_nobody_else_from_being_the_first() -> None:
    cluster, catalog = world.Cluster(*nodes(2)), catalog_of(["base"])
    fail(cluster, "base", "n0", Reason.NO_ROOM)
    cluster.plan(catalog)
    cluster.pods.clear()
    assert world.fetched(cluster.plan(catalog)) == {"n1": ["base"]}


def test_a_timeout_is_the_images_fault_until_it_came_somewhere() -> None:
    catalog = catalog_of(["base"])
    fresh = world.Cluster(*nodes(3))
    fail(fresh, "base", "n0", Reason.TIMEOUT)
    fresh.plan(catalog)
    fresh.pods.clear()
    assert fresh.plan(catalog).fetches == ()
    proven = world.Cluster(*nodes(3))
    proven.pods["good"] = pod_of("base", "n1")
    fail(proven, "base", "n0", Reason.TIMEOUT)
    proven.plan(catalog)
    del proven.pods[pod_of("base", "n0").name]
    assert world.fetched(proven.plan(catalog)) == {"n2": ["base"]}


def test_a_failure_is_counted_once_however_often_it_is_seen() -> None:
    cluster, catalog = world.Cluster(*nodes(1)), catalog_of(["base"])
    fail(cluster, "base", "n0", Reason.IMAGE_ACCESS)
    for _ in range(3):
        cluster.plan(catalog)
    assert [trouble.count for _, trouble in cluster.troubles] == [1]


def test_success_ends_a_row_of_failures() -> None:
    cluster, catalog = world.Cluster(*nodes(2)), catalog_of(["base"])
    for _ in range(3):
        fail(cluster, "base", "n0", Reason.REGISTRY_BUSY)
        cluster.plan(catalog)
        cluster.now += timedelta(minutes=40)
    assert {trouble.count for _, trouble in cluster.troubles} == {3}
    cluster.pods = {"good": pod_of("base", "n1", since=cluster.now)}
    assert world.fetched(cluster.plan(catalog)) == {"n0": ["base"]}
    cluster.now += timedelta(seconds=1)
    fail(cluster, "base", "n0", Reason.REGISTRY_BUSY)
    cluster.plan(catalog)
    assert {trouble.count for _, trouble in cluster.troubles} == {1}


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_put_down_to_something(reason: Reason) -> None:
    assert BLAMES[reason] in Blame


def test_a_release_does_not_wait_for_a_node_that_is_full() -> None:
    """Four of five nodes are warm, and the fifth holds as many pods as it may."""
    cluster, catalog = world.Cluster(*nodes(5)), catalog_of(["base"])
    cluster.pods = {f"p{one}": pod_of("base", f"n{one}") for one in range(4)}
    cluster.pods["full"] = pod_of("base", "n4", step=Step.WAITING)
    given = world.settings()
    waiting = summarize(cluster.picture_of(catalog), cluster.plan(catalog), cluster.troubles, given.limits)
    assert judge(waiting.as_dict(), Question(least=1)).outcome is GateOutcome.WAITING
    cluster.now += given.limits.scheduling_wait + timedelta(seconds=1)
    cluster.plan(catalog)
    told = summarize(cluster.picture_of(catalog), cluster.plan(catalog), cluster.troubles, given.limits)
    verdict = judge(told.as_dict(), Question(least=1))
    assert verdict.outcome is GateOutcome.READY
    assert ["n4: no-room on n4" in text for text in verdict.warnings] == [True]


KEEP = {"after": "1h"}


def unneeded(cluster: world.Cluster, given: Settings) -> Catalog:
    """Have a pin of an image that the catalog does not know any more."""
    cluster.pods["old"] = pod_of("torch", "n0")
    cluster.pods["new"] = pod_of("base", "n0")
    return catalog_of(["base"])


def test_pins_are_let_go_after_a_while_and_a_dry_run_says_what_that_frees() -> None:
    cluster = world.Cluster(world.make_node("n0", images={IMAGES["torch"]: 7_000, IMAGES["base"]: 10}))
    given = world.settings(release=KEEP)
    catalog = unneeded(cluster, given)
    made = cluster.plan(catalog, given)
    assert made.drops == ()
    assert [(one.node, one.images, one.bytes) for one in made.freed] == [("n0", (IMAGES["torch"],), 7_000)]
    cluster.now += timedelta(hours=1)
    assert [(drop.pod.name, drop.why) for drop in cluster.plan(catalog, given).drops] == [
        ("torch-n0", Removal.SUPERSEDED)
    ]


def test_a_mistake_that_is_mended_in_time_costs_nothing() -> None:
    cluster = world.Cluster(*nodes(1))
    given = world.settings(release=KEEP)
    catalog = unneeded(cluster, given)
    cluster.plan(catalog, given)
    cluster.now += timedelta(minutes=59)
    cluster.plan(catalog_of(["base", "torch"]), given)
    cluster.now += timedelta(minutes=59)
    assert cluster.plan(catalog, given).drops == ()


def test_nothing_is_let_go_where_that_is_switched_off() -> None:
    cluster = world.Cluster(*nodes(1))
    given = world.settings(release={"enabled": False, "after": "1h"}, diskBytes="2Mi")
    catalog = unneeded(cluster, given)
    cluster.plan(catalog, given)
    cluster.now += timedelta(days=9)
    assert cluster.plan(catalog, given).drops == ()


def test_a_pull_that_nobody_wants_any_more_ends_at_once() -> None:
    cluster = world.Cluster(*nodes(1))
    cluster.pods["old"] = pod_of("torch", "n0", step=Step.PULLING)
    assert [drop.why for drop in cluster.plan(catalog_of(["base"])).drops] == [Removal.SUPERSEDED]


def test_what_one_may_go_back_to_stays_pinned() -> None:
    old = world.make_profile("p", ["torch"], state="retired", replacedBy=2)
    new = world.make_profile("p", ["base"]) | {"version": 2}
    catalog = world.make_catalog(old, new, images={key: IMAGES[key] for key in ("base", "torch")})
    cluster = world.Cluster(*nodes(1))
    cluster.pods["old"] = pod_of("torch", "n0")
    given = world.settings(release={"after": "1s"})
    cluster.plan(catalog, given)
    cluster.now += timedelta(hours=9)
    made = cluster.plan(catalog, given)
    assert (made.drops, world.fetched(made)) == ((), {"n0": ["base"]})


GIB = 2**30


def test_a_disk_budget_goes_to_what_is_worth_most() -> None:
    sizes = {IMAGES["base"]: 4 * GIB, IMAGES["torch"]: 5 * GIB, IMAGES["flow"]: 3 * GIB}
    # Some node has them all, so their sizes are known.
    knows = world.make_node("knows", images=sizes, unschedulable=True)
    disk = {"ephemeral-storage": str(20 * GIB)}
    cluster = world.Cluster(world.make_node("n0", allocatable=disk), knows)
    given = world.settings(diskShare=0.4, limits={"canary": False})
    starts = {("p-torch", "", "torch"): 5, ("p-flow", "", "flow"): 3, ("p-base", "", "base"): 1}
    made = cluster.plan(catalog_of(), given, starts=starts)
    by_image = {want: wait.hold for (want, node), wait in made.waits.items() if node == "n0"}
    assert world.fetched(made) == {"n0": ["torch"]}
    assert by_image == {
        make_want(IMAGES["flow"]).id: Hold.NODE_BUSY,
        make_want(IMAGES["base"]).id: Hold.OVER_BUDGET,
    }


def test_images_of_equal_use_do_not_push_each_other_out() -> None:
    sizes = {IMAGES["base"]: 4 * GIB, IMAGES["torch"]: 4 * GIB}
    cluster = world.Cluster(world.make_node("n0", images=sizes))
    cluster.pods["there"] = pod_of("torch", "n0")
    given = world.settings(diskBytes="5Gi")
    catalog = catalog_of(["base", "torch"])
    even = {("p-torch", "", "torch"): 10, ("p-base", "", "base"): 12}
    made = cluster.plan(catalog, given, starts=even)
    assert (made.fetches, made.drops) == ((), ())
    clear = {("p-torch", "", "torch"): 10, ("p-base", "", "base"): 30}
    assert [drop.why for drop in cluster.plan(catalog, given, starts=clear).drops] == [Removal.OVER_BUDGET]


@pytest.mark.parametrize("reason", [Reason.REGISTRY_UNREACHABLE, Reason.TOOL_IMAGE])
def test_a_node_that_reaches_nothing_keeps_nothing_from_the_others(reason: Reason) -> None:
    """Its first failure may be the registry's; from the second on others have shown that it is not."""
    cluster, catalog = world.Cluster(*nodes(4)), catalog_of(["base"])
    done: set[str] = set()
    for turn in range(12):
        for fetch in cluster.plan(catalog).fetches:
            if fetch.node == "n0":
                fail(cluster, "base", "n0", reason)
            else:
                cluster.pods[fetch.node] = pod_of("base", fetch.node, since=cluster.now)
                done.add(fetch.node)
        cluster.now += timedelta(seconds=10)
        if any(drop.pod.node == "n0" for drop in cluster.plan(catalog).drops):
            del cluster.pods["base-n0"]
        if turn == 5:
            assert done == {"n1", "n2", "n3"}
    scopes = {blame for (blame, _), _ in cluster.troubles}
    assert scopes <= {Blame.PAIR}
