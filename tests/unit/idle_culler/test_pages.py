"""The API and the pages, asked as users and admins do: whose server it is, what is refused, very many."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any

import httpx
import pytest
from jupyterhub.services.auth import HubOAuth
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from hub_ext.protocol import MAX_BODY
from services.base import Context
from services.base.web import application
from services.idle_culler.app import IdleCuller
from services.idle_culler.callers import Callers
from services.idle_culler.handlers import ROWS
from services.idle_culler.settings import CullerSettings
from tests.fakes.culled_hub import BUSY, CulledHub
from tests.unit.idle_culler.test_culler import POLICY

PREFIX = "/services/idle-culler/"
ACCESS = "access:services!service=idle-culler"
ODD = """o'neil/../<b>&"x\u00e9"""
"""A name that means something else wherever it is not escaped."""


class SignIn(HubOAuth):  # type: ignore[misc]
    """Takes a name for a token; `root` is an admin."""

    async def user_for_token(self, token: str, *_: Any, **__: Any) -> dict[str, Any]:
        name = json.loads(token)
        return {"name": name, "kind": "user", "admin": name == "root", "scopes": [ACCESS]}


def by(user: str) -> dict[str, str]:
    return {"Authorization": f"token {json.dumps(user)}"}


@asynccontextmanager
async def served(world: CulledHub) -> AsyncIterator[httpx.AsyncClient]:
    context = Context(
        name="idle-culler",
        prefix=PREFIX,
        hub_prefix="/hub/",
        address="127.0.0.1",
        port=0,
        token="the-services-own",
        api_url="http://127.0.0.1:9/hub/api",
    )
    service = IdleCuller(CullerSettings(), context, None, world.registry)  # type: ignore[arg-type]
    service.culler, service.callers = world.culler, Callers()
    auth = SignIn(
        api_token="x",
        base_url=PREFIX,
        oauth_client_id="service-idle-culler",
        access_scopes={ACCESS},
        hub_prefix="/hub/",
    )
    server = HTTPServer(application(service, [], auth))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}{PREFIX}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        yield client
    server.stop()
    await server.close_all_connections()


@pytest.fixture
async def world() -> CulledHub:
    world = CulledHub(POLICY)
    world.add("ada")
    world.add(ODD)
    await world.passes(1)
    return world


def body(world: CulledHub, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = world.report("nobody", **fields).model_dump(mode="json", by_alias=True)
    return found


def rows(page: str) -> list[str]:
    return re.findall(r"<tr>\s*<td>(.*?)<br>", unescape(page))


async def test_a_report_is_of_the_one_whose_token_it_came_with(world: CulledHub) -> None:
    async with served(world) as client:
        sent = {**body(world, processes=BUSY), "user": "ada"}
        answer = await client.post("api/report", json=sent, headers=by(ODD))
        assert answer.json()["reason"] == "kernel-runs"
    judged = world.culler.book.judged
    assert judged[ODD, ""].verdict.reason == "kernel-runs"
    assert judged["ada", ""].facts.agent is None


@pytest.mark.parametrize("path", ["keep", "stop", "saved"])
async def test_nobody_acts_on_a_server_of_somebody_else(world: CulledHub, path: str) -> None:
    async with served(world) as client:
        wish = {"server": "", "user": "ada", "save": "1" if path == "saved" else False}
        answer = await client.post(f"api/{path}", json=wish, headers=by("eve"))
        assert answer.status_code == 404
    assert await world.stops() == []


@pytest.mark.parametrize("path", ["api/admin/stop", "api/admin/release"])
async def test_users_are_no_admins(world: CulledHub, path: str) -> None:
    async with served(world) as client:
        answer = await client.post(path, json={"user": "ada", "server": ""}, headers=by(ODD))
        assert answer.status_code == 403
        assert (await client.get("all", headers=by(ODD))).status_code == 403
        assert (await client.get("api/servers?all=1", headers=by(ODD))).status_code == 403
    assert await world.stops() == []


async def test_an_admin_stops_by_the_exact_name(world: CulledHub) -> None:
    async with served(world) as client:
        answer = await client.post("api/admin/stop", json={"user": ODD, "server": ""}, headers=by("root"))
        assert answer.json()["state"] == "stopping"
    assert await world.stops() == [f"{ODD}/"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"{", 400),
        (b'{"windowSeconds": NaN}', 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b"x" * (MAX_BODY + 1), 413),
    ],
    ids=["cut", "nan", "list", "no-text", "huge"],
)
async def test_what_is_no_report_is_refused_and_changes_nothing(
    world: CulledHub, sent: bytes, status: int
) -> None:
    async with served(world) as client:
        headers = {**by("ada"), "Content-Type": "application/json"}
        answer = await client.post("api/report", content=sent, headers=headers)
    assert answer.status_code == status
    assert world.culler.book.inbox.facts(("ada", ""), since=None) is None


async def test_names_are_shown_and_used_as_they_are(world: CulledHub) -> None:
    async with served(world) as client:
        page = (await client.get("all", headers=by("root"))).text
    assert "<b>" not in page
    assert ODD in rows(page)
    assert ODD in [unescape(found) for found in re.findall(r'data-user="([^"]*)"', page)]


async def test_the_page_of_very_many_shows_those_that_end_first_and_finds_the_others() -> None:
    world = CulledHub({"defaults": {"idleTimeout": "20m", "maxDuration": "9d"}})
    world.add("first")
    world.add("last", use=0.9)
    await world.passes(1)
    book, many = world.culler.book, 2_000
    for number in range(many):
        key = f"user-{number:05}", ""
        one = book.judged["last", ""]
        end = world.now + timedelta(hours=number + 1)
        book.judged[key] = replace(one, verdict=replace(one.verdict, deadline=end))
        book.memory.tracks[key] = book.memory.tracks["last", ""]
    async with served(world) as client:
        page = (await client.get("all", headers=by("root"))).text
        shown = rows(page)
        assert len(shown) == ROWS
        assert shown[:3] == ["first", "user-00000", "user-00001"]
        assert f"{many + 2} running; the {ROWS} that end first are shown" in page
        found = (await client.get("all", params={"find": " USER-01999 "}, headers=by("root"))).text
        assert rows(found) == ["user-01999"]
        assert f"{many + 2} running, 1 found" in found
        none = (await client.get("all", params={"find": '"><script>'}, headers=by("root"))).text
        assert rows(none) == []
        assert '"><script>' not in none
        told = (await client.get("api/servers?all=1", headers=by("root"))).json()["servers"]
        assert len(told) == many + 2


async def test_a_wish_that_may_not_be_is_answered_with_its_reason() -> None:
    world = CulledHub({"defaults": {**POLICY["defaults"], "keeps": 0}})
    world.add("ada")
    await world.passes(1)
    async with served(world) as client:
        answer = await client.post("api/keep", json={"server": ""}, headers=by("ada"))
    assert (answer.status_code, "as often as you may" in answer.json()["message"]) == (409, True)


async def test_while_rules_are_tried_out_the_page_says_so_and_counts_nothing_down() -> None:
    world = CulledHub({**POLICY, "mode": "observe"})
    world.add("ada")
    await world.passes(3)
    async with served(world) as client:
        page = (await client.get("", headers=by("ada"))).text
    assert "the rules are only being tried out" in page
    assert "if nothing changes" not in page
    assert "<progress" not in page
