"""The hub's client against a hub in memory."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from hub_ext.errors import HubError
from services.hub import Hub, State, Stop
from tests.fakes.hub import FakeHub

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
ALL = (
    "list:users",
    "read:users:activity",
    "read:users:groups",
    "read:servers",
    "delete:servers",
    "list:groups",
)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch):
    monkeypatch.setattr("services.retries.FIRST_DELAY", 0.0)


@pytest.fixture
def fake():
    return FakeHub()


@pytest.fixture
async def connect(fake):
    """Make clients with certain scopes."""
    made = []

    def make(*scopes):
        made.append(Hub(FakeHub.URL, fake.token(*scopes), transport=fake.transport))
        return made[-1]

    yield make
    for hub in made:
        await hub.close()


async def test_users_come_with_their_servers_and_times(fake, connect):
    fake.add_user("ada", groups=["nlp"])
    fake.add_server("ada", options={"profile": "full"}, started=NOW, last_activity=NOW)
    (ada,) = await connect(*ALL).users()
    assert ada.groups == {"nlp"}
    server = ada.server()
    assert (server.key, server.started, server.options) == ("ada/", NOW, {"profile": "full"})
    assert server.state is None  # a scope that is not granted: not known, rather than empty


async def test_what_the_scopes_do_not_show_is_not_known(fake, connect):
    fake.add_user("ada", groups=["nlp"])
    (ada,) = await connect("list:users").users()
    assert (ada.groups, ada.admin, ada.last_activity) == (None, None, None)
    assert ada.servers == {}


@pytest.mark.parametrize("number", [0, 1, 200, 201, 450])
async def test_all_pages_are_read(fake, connect, number):
    for index in range(number):
        fake.add_user(f"u{index}")
    assert len(await connect(*ALL).users()) == number
    assert len(fake.requests) == max(1, -(-number // 200))


async def test_a_hub_with_smaller_pages_is_read_whole(fake, connect):
    fake.page_limit = 7
    for index in range(20):
        fake.add_user(f"u{index}")
    assert len(await connect(*ALL).users()) == 20


async def test_users_are_listed_by_state(fake, connect):
    fake.add_user("idle")
    fake.add_user("busy")
    fake.add_server("busy", ready=False, pending="spawn")
    hub = connect(*ALL)
    assert "busy" in {user.name for user in await hub.users()}
    assert await hub.users(state=State.READY) == ()


@pytest.mark.parametrize("name", ["ada", "ada@example.org", "a/b", "später", "a b", "...", "a%2Fb"])
async def test_any_name_is_escaped(fake, connect, name):
    fake.add_user(name)
    fake.add_server(name)
    fake.add_server(name, "two words/and more")
    hub = connect(*ALL)
    assert (await hub.user(name)).name == name
    assert await hub.stop_server(name) is Stop.STOPPED
    assert await hub.stop_server(name, "two words/and more") is Stop.STOPPED
    assert fake.stopped == [f"{name}/", f"{name}/two words/and more"]


async def test_stops_say_what_came_of_them(fake, connect):
    fake.slow_to_stop = True
    fake.add_user("ada")
    fake.add_server("ada")
    hub = connect(*ALL)
    assert await hub.stop_server("ada") is Stop.STOPPING
    assert (await hub.server("ada")).pending == "stop"
    fake.finish_stops_for_test()
    assert await hub.server("ada") is None
    assert await hub.stop_server("ada", "other") is Stop.GONE
    assert await hub.stop_server("nobody") is Stop.GONE


async def test_a_stop_that_fails_is_not_asked_for_again(fake, connect):
    fake.add_user("ada")
    fake.add_server("ada")
    fake.fail_for_test(500)
    with pytest.raises(HubError) as caught:
        await connect(*ALL).stop_server("ada")
    assert caught.value.status == 500
    assert len(fake.requests) == 1


async def test_questions_outlive_a_hiccup(fake, connect):
    fake.add_user("ada")
    fake.fail_for_test(502, httpx.ConnectError("refused"))
    assert len(await connect(*ALL).users()) == 1


async def test_one_bad_page_gives_no_half_list(fake, connect):
    fake.page_limit = 1
    fake.add_user("ada")
    fake.add_user("bob")
    hub = connect(*ALL)
    fake.fail_for_test(500, 500, 500)
    with pytest.raises(HubError, match="as told by the test"):
        await hub.users()


async def test_a_refusal_is_not_asked_for_again_and_says_what_is_missing(fake, connect):
    with pytest.raises(HubError, match="scopes of the token") as caught:
        await connect("read:servers").users()
    assert caught.value.status == 403
    assert len(fake.requests) == 1


@pytest.mark.parametrize("following", [{"offset": 0}, {"offset": "x"}, {"limit": 1}, 3])
async def test_pages_that_lead_nowhere_are_an_error(following):
    body = {"items": [], "_pagination": {"next": following}}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    async with Hub(FakeHub.URL, "x", transport=transport) as hub:
        with pytest.raises(HubError):
            await hub.users()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"items": 3}', b'{"items": [{"servers": 3}]}'])
async def test_answers_of_something_else_are_an_error(body):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    async with Hub(FakeHub.URL, "x", transport=transport) as hub:
        with pytest.raises(HubError):
            await hub.users()


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_names_that_lead_elsewhere_are_refused(fake, connect, name):
    hub = connect(*ALL)
    with pytest.raises(HubError, match="no name"):
        await hub.stop_server(name)
    assert fake.requests == []
