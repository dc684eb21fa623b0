"""Limits hold at the start itself, whoever starts what at the same moment, and whatever the hub forgets."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from hub_ext.cluster.offer import NODES_UNSEEN
from tests.devcluster.kube import KubeCluster
from tests.devcluster.waiting import until
from tests.hub.harness import SPAWN_SECONDS, Hub, checked_on, error_on

CPU = {"profile": "cpu"}
FULL = "You have 1 of 1 running workspace in use, and this workspace needs 1 running workspace."
FAILURE_LIMIT = 3
"""Of the shared hub: it exits at the third failure in a row."""


@pytest.fixture
def new_member(hub: Hub, new_user: Callable[..., str]) -> Iterator[Callable[[], str]]:
    """Make members of the team that may run two workspaces, one each; theirs are stopped in the end."""
    made: list[str] = []

    def make() -> str:
        made.append(new_user("tight"))
        return made[-1]

    yield make
    for user in made:
        for server in hub.api("GET", f"users/{user}").json()["servers"]:
            hub.stop_server(user, server)


@pytest.fixture
def pods_of(cluster: KubeCluster, hub_namespace: str) -> Callable[[str], list[str]]:
    return lambda user: named(cluster, hub_namespace, "pods", user)


@pytest.fixture
def claims_of(cluster: KubeCluster, hub_namespace: str) -> Callable[[str], list[str]]:
    return lambda user: named(cluster, hub_namespace, "persistentvolumeclaims", user)


def named(cluster: KubeCluster, namespace: str, kind: str, user: str) -> list[str]:
    """Name the objects that are a user's."""
    text = cluster.kubectl("get", kind, f"--namespace={namespace}", "--output=json")
    found = (one["metadata"] for one in json.loads(text)["items"])
    return [one["name"] for one in found if one["annotations"].get("hub.jupyter.org/username") == user]


def settled(hub: Hub, user: str) -> dict[str, Any]:
    """Wait until no server of a user is on its way, and give those that are up."""

    def pending() -> str | None:
        hub.check()
        found = [one for one in hub.api("GET", f"users/{user}").json()["servers"].values() if one["pending"]]
        return f"these are pending: {found}" if found else None

    until(pending, what=f"the servers of {user} to be up or refused", timeout=SPAWN_SECONDS)
    servers = hub.api("GET", f"users/{user}").json()["servers"]
    return {name: one for name, one in servers.items() if one["ready"]}


def test_of_two_servers_in_the_same_instant_one_starts(
    hub: Hub, new_member: Callable[[], str], pods_of: Callable[[str], list[str]]
) -> None:
    user = new_member()
    for number in range(3):
        names = [f"a{number}", f"b{number}"]

        def start(name: str) -> httpx.Response:
            return hub.start_server(user, CPU, server=name)

        with ThreadPoolExecutor(len(names)) as pool:
            answers = list(pool.map(start, names))
        up = settled(hub, user)
        assert len(up) == 1, [answer.text for answer in answers]
        assert len(pods_of(user)) == 1
        for answer in answers:
            assert answer.status_code in {201, 202} or FULL in answer.json()["message"]
        hub.stop_server(user, *up)
        assert pods_of(user) == []


def test_form_and_rest_say_the_same_and_the_hub_stays_up(hub: Hub, new_member: Callable[[], str]) -> None:
    user = new_member()
    hub.start_server(user, CPU)
    hub.wait_until_ready(user)
    texts = set()
    with hub.browser(user) as browser:
        for _ in range(FAILURE_LIMIT + 1):
            rest = hub.refused_start(user, CPU, server="more")
            form = browser.refused_form({"profile": "cpu@1"}, server="more", user=user)
            assert (rest.status_code, form.status_code) == (403, 403)
            texts |= {rest.json()["message"], error_on(form.text)}
    (text,) = texts
    assert text.startswith(FULL)
    hub.check()
    assert "reason=user-limit" in hub.log


def test_the_team_s_limit_counts_its_other_members(
    hub: Hub, new_member: Callable[[], str], claims_of: Callable[[str], list[str]]
) -> None:
    *first, last = [new_member() for _ in range(3)]
    for user in first:
        hub.start_server(user, CPU)
        hub.wait_until_ready(user)
    refused = hub.refused_start(last, CPU)
    assert refused.status_code == 403
    assert "Your team has 2 of 2 running workspaces in use" in refused.json()["message"]
    assert claims_of(last) == [], "a refusal leaves nothing behind"
    assert len(claims_of(first[0])) == 1
    hub.stop_server(first[0])
    assert hub.start_server(last, CPU).status_code in {201, 202}
    hub.wait_until_ready(last)


def test_a_hub_that_comes_back_counts_what_runs(hub: Hub, new_member: Callable[[], str]) -> None:
    user = new_member()
    hub.start_server(user, CPU)
    hub.wait_until_ready(user)
    hub.stop()
    hub.start()
    refused = hub.refused_start(user, CPU, server="more")
    assert refused.status_code == 403
    assert FULL in refused.json()["message"]
    hub.stop_server(user)
    assert hub.start_server(user, CPU, server="more").status_code in {201, 202}
    hub.wait_until_ready(user, "more")


def test_one_s_own_server_can_be_started_again(hub: Hub, new_member: Callable[[], str]) -> None:
    user = new_member()
    for _ in range(2):
        assert hub.start_server(user, CPU).status_code in {201, 202}
        hub.wait_until_ready(user)
        hub.stop_server(user)


def test_the_page_says_how_many_more_and_why_not(hub: Hub, new_member: Callable[[], str]) -> None:
    user = new_member()
    with hub.browser(user) as browser:
        before = browser.spawn_page(server="more", user=user).text
        hub.start_server(user, CPU)
        hub.wait_until_ready(user)
        after = browser.spawn_page(server="more", user=user).text
        rest = hub.refused_start(user, CPU, server="more").json()["message"]
    assert "<li>1 more for you</li>" in before
    assert "<li>2 more for your team</li>" in before
    assert checked_on(before) == ["cpu@1"]
    assert rest.startswith(FULL)
    assert rest in html.unescape(after)
    assert checked_on(after) == []
    # This hub has the rights of the chart's, and those do not include nodes.
    assert NODES_UNSEEN in before


def test_page_and_rest_say_what_would_fit_instead(hub: Hub, new_user: Callable[..., str]) -> None:
    user = new_user("cards")
    hub.start_server(user, {"profile": "full"}, server="first")
    hub.wait_until_ready(user, "first")
    rest = hub.refused_start(user, {"profile": "full"}, server="second")
    text = "You have 1 of 1 GPU in use, and this workspace needs 1 GPU. What would fit now: Notebook."
    assert (rest.status_code, rest.json()["message"]) == (403, text)
    with hub.browser(user) as browser:
        form = browser.refused_form({"profile": "full@2"}, server="second", user=user)
        page = browser.spawn_page(server="second", user=user)
    assert error_on(form.text) == text
    assert text in html.unescape(page.text)
    assert repr(text) in hub.log
    assert re.search(
        r'gpu_workspaces_refusals_total\{profile="full",reason="user-limit"\} ([2-9]|\d\d)', hub.metrics()
    )
    hub.stop_server(user, "first")


def test_the_hub_counts_how_well_it_sees_the_cluster(hub: Hub, hub_namespace: str) -> None:
    metrics = hub.metrics()
    assert f'gpu_workspaces_watch_health{{health="live",source="pods in {hub_namespace}"}} 1.0' in metrics
    assert 'gpu_workspaces_watch_health{health="denied",source="nodes"} 1.0' in metrics
