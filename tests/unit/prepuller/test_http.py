"""The page and the API, as the hub's people and programs ask for them."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from jupyterhub.services.auth import HubOAuth
from prometheus_client import CollectorRegistry
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import create_signed_value

from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.prepulled import read_prepulled
from services.base.web import application
from services.prepuller.app import PrepullerService, PrepullerSettings
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.prepulling.service import CONTEXT
from tests.unit.prepuller import world
from tests.unit.prepuller.test_prepuller import CATALOG, Bench

ACCESS = "access:services!service=prepuller"
BASE, TORCH = CATALOG.images["base"].ref, CATALOG.images["torch"].ref


class SignIn(HubOAuth):
    """Knows tokens by itself."""

    known = {  # noqa: RUF012
        "prepuller": {"name": "prepuller", "kind": "service", "scopes": [ACCESS]},
        "admin": {"name": "admin", "kind": "user", "scopes": [ACCESS]},
        "ada": {"name": "ada", "kind": "user", "scopes": ["self"]},
    }

    async def user_for_token(
        self, token: str, use_cache: bool = True, session_id: str = "", *, sync: bool = True
    ) -> Any:
        return dict(self.known[token]) if token in self.known else None


class Site:
    """The service's site, over a cluster that the test plays."""

    def __init__(self, bench: Bench, client: httpx.AsyncClient, service: Any) -> None:
        self.bench, self.client, self.service = bench, client, service

    async def get(self, path: str, who: str = "prepuller", **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={"Authorization": f"token {who}", **headers})

    async def page(self) -> str:
        secret = hmac.digest(CONTEXT.token.encode(), b"gpu-workspaces cookies", "sha256")
        signed = create_signed_value(secret, "service-prepuller", "admin").decode()
        self.client.cookies.set("service-prepuller", signed)
        answer = await self.client.get("")
        assert answer.status_code == 200
        return answer.text


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    bench = Bench()
    service = PrepullerService(
        PrepullerSettings(catalog="catalog.yaml"),  # type: ignore[arg-type]
        CONTEXT,
        SimpleNamespace(),  # type: ignore[arg-type]
        CollectorRegistry(),
    )
    service.prepuller = bench.prepuller
    service.loop = SimpleNamespace(problem="")  # type: ignore[assignment]
    service.catalog = SimpleNamespace(problem="")  # type: ignore[assignment]
    auth = SignIn(
        api_token="x",
        base_url=CONTEXT.prefix,
        oauth_client_id="service-prepuller",
        access_scopes={ACCESS},
        hub_prefix="/hub/",
    )
    server, sockets = HTTPServer(application(service, [], auth)), bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}{CONTEXT.prefix}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        yield Site(bench, client, service)
    server.stop()
    await server.close_all_connections()


async def test_the_hub_reads_what_is_warm_and_asks_again_cheaply(site: Site) -> None:
    await site.bench.once()
    site.bench.come()
    await site.bench.once()
    answer = await site.get("api/warm")
    found = read_prepulled(answer.json())
    assert found.known[BASE, ""].warm == {"n0"}
    assert found.known[TORCH, ""].warm == {"n1"}
    again = await site.get("api/warm", **{"If-None-Match": answer.headers["Etag"]})
    assert (again.status_code, again.content) == (304, b"")
    await site.bench.once()
    assert (await site.get("api/warm", **{"If-None-Match": answer.headers["Etag"]})).status_code == 200


@pytest.mark.parametrize("path", ["api/warm", "api/status", "api/plan", "api/gate"])
async def test_only_those_who_may_are_answered(site: Site, path: str) -> None:
    await site.bench.once()
    assert (await site.get(path)).status_code == 200
    assert (await site.get(path, who="ada")).status_code == 403
    assert (await site.get(path, who="nobody")).status_code == 403


@pytest.mark.parametrize("path", ["api/warm", "api/status", "api/plan", "api/gate"])
async def test_while_nothing_is_in_sight_nothing_is_said(site: Site, path: str) -> None:
    answer = await site.get(path)
    assert (answer.status_code, "Kubernetes" in answer.json()["message"]) == (503, True)


async def test_the_plan_says_what_is_next_and_what_waits(site: Site) -> None:
    await site.bench.once()
    told = (await site.get("api/plan")).json()
    assert {(one["image"], one["node"]) for one in told["fetch"]} == {(BASE, "n0"), (TORCH, "n1")}
    assert {one["pullSecrets"][0] for one in told["fetch"] if one["pullSecrets"]} == {"regcred"}
    assert {one["hold"] for one in told["wait"]} == {"canary", "node-busy"}


@pytest.mark.parametrize(
    ("query", "status", "outcome"),
    [
        ({"least": "0.5"}, 200, "ready"),
        ({"least": "1"}, 200, "waiting"),
        ({"least": "1", "profile": "no-such"}, 200, "waiting"),
        ({"least": "0.5", "catalog": "another"}, 200, "waiting"),
        ({"least": "2"}, 400, None),
        ({"least": "nan"}, 400, None),
        ({"least": "most"}, 400, None),
    ],
)
async def test_the_gate(site: Site, query: dict[str, str], status: int, outcome: str | None) -> None:
    await site.bench.once()
    site.bench.come()
    await site.bench.once()
    answer = await site.client.get("api/gate", params=query, headers={"Authorization": "token prepuller"})
    assert (answer.status_code, answer.json().get("outcome")) == (status, outcome)


async def test_the_page_shows_every_image_on_every_node(site: Site) -> None:
    await site.bench.once()
    site.bench.refuse('rpc error: code = NotFound desc = "<b>x</b>": not found')
    await site.bench.once()
    text = await site.page()
    for image in (BASE, TORCH):
        assert f'data-image="{image}"' in text
    assert text.count('data-node="n0"') == text.count('data-node="n1"') == 2
    assert text.count('data-reason="image-not-found"') == 2
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert "<b>x</b>" not in text
    assert "<script" not in text
    assert f"{world.REGISTRY}/base@aaaaaaaaaaaa" in text


async def test_the_page_says_what_keeps_it_from_being_right(site: Site) -> None:
    """A pass that failed, a catalog that is broken, a name in the settings that means nothing."""
    site.bench.prepuller.judge.settings = world.settings(skip=["onee"])
    await site.bench.once()
    assert (await site.page()).count('class="gw-notice') == 1
    site.service.loop.problem = site.service.catalog.problem = "<secret>"
    text = await site.page()
    assert "Did you mean one?" in text
    assert text.count("The log says why.") == 2
    assert "secret" not in text


@pytest.mark.parametrize("number", [60, 201])
async def test_the_page_of_many_nodes(site: Site, number: int) -> None:
    for one in range(number):
        site.bench.store.put(Kind.NODES, world.make_node(f"many-{one}"), site.bench.now)
    await site.bench.once()
    text = await site.page()
    cells = 2 * (number + 2)
    assert text.count('role="img"') == (cells if number == 60 else 0)
    assert ("<rect" in text) == (number == 201)


async def test_a_visitor_is_sent_to_the_hub(site: Site) -> None:
    assert (await site.client.get("")).status_code == 302
