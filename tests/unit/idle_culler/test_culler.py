"""The culler beside a hub, a cluster and a Prometheus in memory: passes, stops, outages, restarts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hub_ext.catalog.load import load_catalog
from hub_ext.errors import HubError
from hub_ext.protocol import State as Told
from services.idle_culler.book import Book
from services.idle_culler.facts import HubFacts
from services.idle_culler.policy import Mode, Policy
from services.idle_culler.reasons import Reason
from tests.fakes.culled_hub import BUSY, NAMESPACE, UNSAVED, CulledHub, build_pod
from tests.fakes.culler import NOON
from tests.unit.idle_culler.catalogs import CATALOG

POLICY = {"defaults": {"idleTimeout": "20m", "warnBefore": ["5m", "2m"]}}

STOP = 11
"""Passes until an idle server is stopped: the first one finds ten minutes that the metrics vouch for."""


def told(world: CulledHub, user: str, server: str = "") -> tuple[Told, Reason]:
    verdict = world.culler.outlook((user, server)).verdict
    return verdict.told, verdict.reason


def source_up(world: CulledHub, source: str) -> float | None:
    return world.registry.get_sample_value("gpu_workspaces_culler_source_up", {"source": source})


async def test_an_idle_server_is_warned_and_stopped_and_its_volume_stays() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(STOP - 4)
    assert told(world, "ada") == (Told.WARNED, Reason.GPU_IDLE)
    assert world.hub.stopped == []
    await world.passes(4)
    assert await world.stops() == ["ada/"]
    assert [notice.title for notice in world.outbox.sent] == [
        "Your workspace stops in 5m",
        "Your workspace stops in 2m",
        "Your workspace was stopped",
    ]
    assert {verb for verb, _ in world.kube.calls} == {"list", "get"}
    assert ("ada", "") not in world.culler.book.judged


@pytest.mark.parametrize(
    "parts",
    [{"use": 0.4}, {"cores": 0.9}, {"quiet": timedelta(0)}],
    ids=["gpu", "processors", "hub"],
)
async def test_a_server_with_any_sign_of_work_is_kept(parts) -> None:
    world = CulledHub(POLICY)
    world.add("ada", **parts)
    for _ in range(2 * STOP):
        if "quiet" in parts:
            world.hub.users["ada"]["servers"][""]["last_activity"] = world.now.isoformat()
        await world.passes()
    assert await world.stops() == []


async def test_a_server_whose_gpu_is_not_measured_is_not_known() -> None:
    world = CulledHub(POLICY)
    world.add("ada", use=None)
    world.add("bob")
    world.add("eve", use=0.5)
    await world.passes(STOP)
    assert await world.stops() == ["bob/"]
    await world.passes(1)
    assert told(world, "ada") == (Told.UNKNOWN, Reason.NO_GPU_READINGS)


@pytest.mark.parametrize("outage", ["prometheus", "kubernetes"])
async def test_clocks_stand_still_through_an_outage_and_admins_hear_of_it_once(outage: str) -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(5)
    if outage == "prometheus":
        world.prometheus.down = 503
    else:
        world.kube._rights = []
    await world.passes(3 * STOP)
    assert world.hub.stopped == []
    assert told(world, "ada")[0] is Told.UNKNOWN
    alerts = [notice for notice in world.outbox.sent if not notice.user]
    assert len(alerts) == len({notice.title for notice in alerts}) >= 1


async def test_a_hub_that_starts_anew_in_the_midst_of_warnings_hastens_no_stop() -> None:
    world = CulledHub({**POLICY, "grace": "3m"})
    world.add("ada")
    await world.passes(STOP - 5)
    assert [notice.title for notice in world.outbox.sent] == ["Your workspace stops in 5m"]
    world.culler.book.observer._list_hub_every = timedelta(0)
    world.hub.fail_for_test(*[403] * 30)
    for _ in range(30):
        with pytest.raises(HubError):
            await world.passes(1)
    assert world.hub.stopped == []
    await world.passes(4)
    assert [notice.title for notice in world.outbox.sent if notice.user] == [
        "Your workspace stops in 5m",
        "Your workspace stops in 2m",
    ]
    assert world.hub.stopped == []
    await world.passes(2)
    assert await world.stops() == ["ada/"]


@pytest.mark.parametrize("shift", [timedelta(minutes=-20), timedelta(minutes=20)], ids=["kept", "ahead"])
async def test_answers_of_another_moment_are_none(shift: timedelta) -> None:
    """A cache between the culler and Prometheus gives what was true before: the ages in it are of then."""
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(5)
    world.prometheus.clock = lambda: world.now + shift
    await world.passes(2 * STOP)
    assert await world.stops() == []
    assert told(world, "ada") == (Told.UNKNOWN, Reason.NO_METRICS)
    assert "by the clock here" in world.culler.book.observer.view.problems["gpus"]


async def test_a_pod_that_has_ended_stands_for_no_server_beside_the_one_that_runs() -> None:
    """It stayed in another namespace, without the GPU."""
    world = CulledHub(POLICY)
    world.culler.book.observer._namespaces = (NAMESPACE, "team-old")
    world.add("ada")
    old = build_pod("ada", gpus=0)
    old["metadata"]["namespace"], old["status"]["phase"] = "team-old", "Succeeded"
    world.kube.put_for_test(old)
    await world.passes(1)
    facts = world.culler.book.judged["ada", ""].facts
    assert facts.pod is not None
    assert (facts.pod.namespace, sum(facts.pod.devices.values())) == (NAMESPACE, 1)
    assert told(world, "ada")[0] is Told.IDLE


async def test_of_two_pods_that_both_run_it_is_not_known_which_is_the_server() -> None:
    world = CulledHub(POLICY)
    world.culler.book.observer._namespaces = (NAMESPACE, "team-new")
    world.add("ada")
    world.add("bob")
    second = build_pod("ada", gpus=0)
    second["metadata"]["namespace"] = "team-new"
    world.kube.put_for_test(second)
    await world.passes(STOP)
    assert await world.stops() == ["bob/"]
    assert told(world, "ada")[0] is Told.UNKNOWN


async def test_without_the_hub_nothing_is_done_and_grace_begins_anew() -> None:
    world = CulledHub({**POLICY, "grace": "15m"})
    world.add("ada")
    await world.passes(5)
    world.hub.fail_for_test(*[404] * 3)
    world.culler.book.observer.view.listed = None
    for _ in range(3):
        with pytest.raises(HubError):
            await world.passes(1)
    assert source_up(world, "hub") == 0
    assert "hub" in world.culler.book.observer.view.problems
    await world.passes(13)
    assert source_up(world, "hub") == 1
    assert world.culler.outlook(("ada", "")).verdict.held is Reason.GRACE
    assert await world.stops() == []
    await world.passes(4)
    assert await world.stops() == ["ada/"]


async def test_a_page_or_a_user_of_the_hub_that_cannot_be_read_costs_those_servers_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.retries.FIRST_DELAY", 0.0)
    world = CulledHub(POLICY)
    world.hub.page_limit = 2
    for user in ("ada", "bob", "cyd", "dan", "eve", "fay"):
        world.add(user)
    world.culler.book.observer._list_hub_every = timedelta(0)
    await world.passes(3)
    assert await world.culler.keep(("cyd", "")) == ""
    world.hub.broken_pages = {2}
    world.hub.users["fay"]["servers"][""]["started"] = "yesterday"
    await world.passes(STOP - 3)
    assert sorted(await world.stops()) == ["ada/", "bob/", "eve/"], "those that could be read"
    assert source_up(world, "hub") == 0
    assert world.culler.book.memory.tracks["cyd", ""].keeps == 1
    assert [notice.title for notice in world.outbox.sent].count("Idle-culler: hub") == 1
    world.hub.broken_pages = set()
    await world.passes(STOP)
    assert "dan/" in await world.stops()
    assert "fay/" not in world.hub.stopped


async def test_without_two_pages_in_a_row_the_hub_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.retries.FIRST_DELAY", 0.0)
    world = CulledHub(POLICY)
    world.hub.page_limit, world.hub.broken_pages = 1, {1, 2}
    for user in ("ada", "bob", "cyd"):
        world.add(user)
    with pytest.raises(HubError):
        await world.passes(1)
    world.hub.broken_pages = {0}
    with pytest.raises(HubError):
        await world.passes(1)


async def test_clocks_warnings_and_keeps_outlive_a_restart(tmp_path: Path) -> None:
    world = CulledHub(POLICY, state=tmp_path / "state.json")
    world.add("ada")
    await world.passes(STOP - 4)
    before = world.culler.book.memory.tracks["ada", ""]
    world.restart()
    assert world.culler.book.memory.tracks["ada", ""] == before
    await world.passes(4)
    assert await world.stops() == ["ada/"]
    assert world.outbox.sent[0].title == "Your workspace stops in 2m"


async def test_a_state_that_cannot_be_read_is_set_aside_and_clocks_begin_anew(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text('{"format": 1, "tracks": [{"user": "ada", "idleSeconds": "soon"}]}')
    world = CulledHub(POLICY, state=state)
    world.add("ada")
    await world.passes(1)
    assert (tmp_path / "state.json.unreadable").exists()
    assert world.culler.book.memory.tracks["ada", ""].idle_warned == 0


# --- the last moment


async def test_a_user_who_comes_back_in_the_last_moment_is_not_stopped() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(STOP - 1)
    world.now += timedelta(minutes=1)
    world.put_metrics()
    record = world.hub.users["ada"]["servers"][""]
    await world.culler.book.observer.look()
    record["last_activity"] = world.now.isoformat()
    await world.culler.once()
    assert await world.stops() == []


async def test_a_server_that_was_started_anew_is_another_one() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(STOP - 1)
    world.now += timedelta(minutes=1)
    world.put_metrics()
    await world.culler.book.observer.look()
    world.hub.users["ada"]["servers"][""]["started"] = world.now.isoformat()
    await world.culler.once()
    assert await world.stops() == []


async def test_work_in_the_metrics_of_the_last_moment_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CulledHub(POLICY)
    name = world.add("ada")
    await world.passes(STOP - 1)
    observer, asked = world.culler.book.observer, []
    ask = observer.server

    async def slowly(key: tuple[str, str]) -> HubFacts | None:
        """Ask a hub that takes its time, in which the work begins."""
        asked.append(key)
        world.use[name] = 0.9
        world.put_metrics()
        world.now += timedelta(seconds=45)
        return await ask(key)

    monkeypatch.setattr(observer, "server", slowly)
    await world.passes(1)
    assert await world.stops() == []
    assert asked == [("ada", "")]


async def test_a_pod_that_stays_and_a_claim_that_goes_are_told_to_admins() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    world.add("bob")
    world.kube.drop_for_test(f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/claim-bob")
    await world.passes(STOP)
    await world.stops()
    titles = {notice.title for notice in world.outbox.sent if not notice.user}
    assert titles == {"A stop ended badly: claim-gone"}


async def test_a_pod_that_outlives_its_server_is_told_to_admins() -> None:
    world = CulledHub(POLICY)
    world.hub.pods_remain = True
    world.add("ada")
    await world.passes(STOP)
    await world.stops()
    assert "A stop ended badly: pod-remains" in {notice.title for notice in world.outbox.sent}


async def test_one_stop_that_fails_ends_no_other_and_is_tried_again() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    world.add("bob")
    await world.passes(STOP - 1)
    world.hub.stops_that_fail = 1
    await world.passes(1)
    assert len(await world.stops()) == 1
    await world.passes(2)
    assert sorted(await world.stops()) == ["ada/", "bob/"]


# --- named servers, profiles, policy


async def test_each_server_is_judged_by_itself_and_named_ones_are_stopped_by_name() -> None:
    world = CulledHub({**POLICY, "thresholds": {"activeWithin": "15m"}})
    world.add("ada", gpus=0, quiet=timedelta(minutes=4))
    world.add("ada", "analytics", quiet=timedelta(days=3))
    world.hub.users["ada"]["last_activity"] = NOON.isoformat()
    for _ in range(STOP):
        world.hub.users["ada"]["servers"][""]["last_activity"] = world.now.isoformat()
        await world.passes()
    assert await world.stops() == ["ada/analytics"]
    assert "" in world.hub.users["ada"]["servers"]


async def test_the_profile_says_its_own_limits_and_a_rule_says_more() -> None:
    labels = {
        "gpu-workspaces.jupyter.org/profile": "full",
        "gpu-workspaces.jupyter.org/profile-version": "2",
        "gpu-workspaces.jupyter.org/team": "nlp",
    }
    world = CulledHub({"rules": [{"when": {"teams": ["vision"]}, "idleTimeout": "never"}]})
    world.restart(load_catalog(CATALOG))
    world.add("ada", **labels)
    world.add("bob", **{**labels, "gpu-workspaces.jupyter.org/team": "vision"})
    await world.passes(1)
    assert world.culler.book.judged["ada", ""].limits.idle == 90 * 60
    assert world.culler.book.judged["ada", ""].limits.session == 12 * 3600
    assert world.culler.book.judged["ada", ""].limits.warn_before == (1800, 600, 120)
    assert world.culler.book.judged["bob", ""].limits.idle is None


async def test_only_observing_is_what_comes_out_of_the_box() -> None:
    world = CulledHub({**POLICY, "mode": "observe"})
    world.add("ada")
    await world.passes(STOP)
    assert await world.stops() == []
    assert world.outbox.sent == []
    assert world.culler.outlook(("ada", "")).verdict.held is Reason.OBSERVE_ONLY
    assert Policy().mode is Mode.OBSERVE


async def test_when_too_many_seem_idle_nobody_is_stopped_until_an_admin_says_so() -> None:
    world = CulledHub(POLICY)
    for number in range(12):
        world.add(f"user{number}")
    await world.passes(STOP + 2)
    assert await world.stops() == []
    assert world.culler.gate.reason is Reason.TOO_MANY
    assert told(world, "user3")[0] is Told.WARNED
    world.culler.release(by="root")
    await world.passes(1)
    assert len(await world.stops()) == 12


async def test_what_was_held_goes_a_few_at_a_time_once_admins_had_time_to_look() -> None:
    world = CulledHub({**POLICY, "breaker": {"hold": "20m"}})
    for number in range(12):
        world.add(f"user{number}")
    await world.passes(STOP + 20)
    assert len(await world.stops()) == 5
    await world.passes(9)
    assert len(await world.stops()) == 5
    await world.passes(2)
    assert len(await world.stops()) == 10


async def test_when_little_is_known_nobody_is_stopped() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    for number in range(10):
        world.add(f"user{number}", use=None)
    await world.passes(STOP + 2)
    assert await world.stops() == []
    assert world.culler.gate.reason is Reason.TOO_LITTLE_KNOWN


async def test_a_broken_server_does_not_end_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    world.add("bob")
    look = Book.look

    def broken(self, key, *, announces):
        if key[0] == "ada":
            raise ZeroDivisionError
        return look(self, key, announces=announces)

    monkeypatch.setattr(Book, "look", broken)
    await world.passes(STOP)
    assert await world.stops() == ["bob/"]


# --- reports and wishes


async def test_reports_reset_the_clock_between_passes() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(STOP - 1)
    world.hear("ada", processes=BUSY)
    assert told(world, "ada") == (Told.IN_USE, Reason.KERNEL_RUNS)
    world.hear("ada")
    await world.passes(STOP - 2)
    assert await world.stops() == []


async def test_a_report_alone_never_begins_a_stop() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(STOP - 1)
    before = len(world.hub.requests)
    for _ in range(30):
        world.now += timedelta(seconds=10)
        world.hear("ada")
    assert len(world.hub.requests) == before


async def test_an_older_report_changes_nothing() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(1)
    old = world.report("ada", processes=BUSY)
    world.hear("ada")
    world.culler.hear("ada", old)
    assert told(world, "ada")[0] is Told.IDLE


async def test_keep_is_budgeted() -> None:
    world = CulledHub({"defaults": {**POLICY["defaults"], "keeps": 2}})
    world.add("ada")
    await world.passes(STOP - 3)
    assert (await world.culler.keep(("ada", ""))) == ""
    assert told(world, "ada") == (Told.KEPT, Reason.KEPT)
    assert (await world.culler.keep(("ada", ""))) == ""
    assert "as often as you may" in await world.culler.keep(("ada", ""))
    await world.passes(STOP)
    assert await world.stops() == []


async def test_documents_are_saved_before_the_stop() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    page = {"documents": UNSAVED, "input_seconds": 9000.0}
    world.hear("ada", **page)
    await world.passes()
    while told(world, "ada")[0] is not Told.SAVING:
        world.hear("ada", **page)
        await world.passes()
    assert len(world.outbox.sent) == 2
    saving = world.culler.book.memory.tracks["ada", ""].saving
    assert saving
    assert await world.stops() == []
    await world.culler.saved(("ada", ""), "another", ())
    assert await world.stops() == []
    await world.culler.saved(("ada", ""), saving.id, ())
    assert await world.stops() == ["ada/"]


async def reported_pass(world: CulledHub, *users: str) -> None:
    """One pass, with a report of each workspace before and after it: a page is open there."""
    for user in users:
        world.hear(user, documents=UNSAVED, input_seconds=9000.0)
    await world.passes()
    for user in users:
        if (user, "") in world.culler.book.judged:
            world.hear(user, documents=UNSAVED, input_seconds=9000.0)


async def test_what_was_held_is_saved_once_it_may_be_stopped() -> None:
    world = CulledHub({**POLICY, "grace": "40m"})
    world.add("ada")
    while world.now < NOON + timedelta(minutes=39):
        await reported_pass(world, "ada")
    assert world.culler.outlook(("ada", "")).verdict.held is Reason.GRACE
    for _ in range(3):
        await reported_pass(world, "ada")
        if told(world, "ada")[0] is Told.SAVING:
            break
    assert told(world, "ada")[0] is Told.SAVING
    assert await world.stops() == []
    saving = world.culler.book.memory.tracks["ada", ""].saving
    assert saving
    await world.culler.saved(("ada", ""), saving.id, ())
    assert await world.stops() == ["ada/"]


async def first_saving(world: CulledHub) -> tuple[list[str], list[str]]:
    """Let twelve idle servers reach their end: gives their users, and the five of them that go first."""
    users = [f"user{number}" for number in range(12)]
    for user in users:
        world.add(user)
    for _ in range(2 * STOP + 20):
        await reported_pass(world, *users)
        if saving := [user for user in users if told(world, user)[0] is Told.SAVING]:
            break
    assert len(saving) == 5
    return users, saving


async def test_what_goes_a_few_at_a_time_is_saved_whatever_is_reported_meanwhile() -> None:
    world = CulledHub({**POLICY, "breaker": {"hold": "20m"}})
    _, saving = await first_saving(world)
    await reported_pass(world, *saving)
    judged = world.culler.book.judged.values()
    assert [one.facts.label for one in judged if one.verdict.told is Told.SAVING] == []
    assert len(await world.stops()) == 5, "those that nobody confirmed are stopped in the end"


async def test_a_save_that_goes_on_counts_once_against_what_may_go() -> None:
    defaults = {**POLICY["defaults"], "saveWithin": "5m"}
    world = CulledHub({"defaults": defaults, "breaker": {"hold": "20m"}})
    users, saving = await first_saving(world)
    await reported_pass(world, *users)
    assert [user for user in users if told(world, user)[0] is Told.SAVING] == saving
    for user in saving:
        request = world.culler.book.memory.tracks[user, ""].saving
        assert request
        await world.culler.saved((user, ""), request.id, ())
    assert sorted(await world.stops()) == sorted(f"{user}/" for user in saving)


async def test_a_user_may_stop_also_where_nothing_is_stopped_by_itself() -> None:
    world = CulledHub({"mode": "observe"})
    world.add("ada")
    await world.passes(1)
    await world.culler.ask_stop(("ada", ""), by="user", save=False)
    assert await world.stops() == ["ada/"]


async def test_a_server_that_reports_is_known_before_the_next_list() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    await world.passes(1)
    world.add("bob")
    world.hear("bob")
    world.hear("eve", "no-such-server")
    await world.passes(1)
    assert told(world, "bob")[0] is Told.IDLE
    assert world.hub.requests.count(("GET", "/hub/api/users")) == 1
    await world.passes(1)
    assert world.hub.requests.count(("GET", "/hub/api/users/bob")) == 1


async def test_what_an_admin_stops_the_user_cannot_keep() -> None:
    world = CulledHub(POLICY)
    world.add("ada")
    page = {"documents": UNSAVED}
    world.hear("ada", **page)
    await world.passes(1)
    world.hear("ada", **page)
    await world.culler.ask_stop(("ada", ""), by="admin", save=True)
    assert told(world, "ada") == (Told.SAVING, Reason.ADMIN_ASKED)
    assert "administrator" in await world.culler.keep(("ada", ""))


async def test_the_hub_is_listed_every_five_minutes_and_prometheus_asked_five_questions_a_pass() -> None:
    world = CulledHub(POLICY)
    for number in range(30):
        world.add(f"user{number}")
    await world.passes(10)
    assert world.hub.requests.count(("GET", "/hub/api/users")) == 2
    assert len(world.kube.calls) == 2
    assert len(world.prometheus.queries) == 50
