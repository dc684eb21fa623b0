"""The skeleton of services: settings, loops, the followed catalog, sign-in and what is refused."""

from __future__ import annotations

import asyncio
import shutil
import socket
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from jupyterhub.services.auth import HubOAuth
from prometheus_client import CollectorRegistry, Counter
from pydantic import BaseModel
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from hub_ext.errors import CatalogError, HubError
from services.base import (
    ANYONE,
    Api,
    CatalogFile,
    Context,
    Loop,
    Page,
    PrometheusSettings,
    Refusal,
    Service,
    ServiceSettings,
    SettingsError,
    main,
    read_settings,
)
from services.base.loop import LoopMetrics
from services.base.web import application
from tests.devcluster.waiting import PATIENCE_SECONDS

CLEAN = Path(__file__).parents[1] / "catalog" / "clean.yaml"
CONTEXT = Context(
    name="greeter",
    prefix="/services/greeter/",
    hub_prefix="/hub/",
    address="127.0.0.1",
    port=0,
    token="the-services-own",
    api_url="http://127.0.0.1:9/hub/api",
)
ACCESS = "access:services!service=greeter"


# Settings


class Settings(ServiceSettings):
    every: int = 3
    prometheus: PrometheusSettings | None = None


def test_settings_are_read_in_the_words_of_yaml(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("every: 4\nprometheus: {url: 'http://prometheus', tokenFile: /token}\n")
    found = read_settings(Settings, file)
    assert (found.every, found.prometheus.token_file) == (4, Path("/token"))
    assert read_settings(Settings, None).every == 3
    file.write_text("# nothing\n")
    assert read_settings(Settings, file).every == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("evry: 4\n", ":1: error[bad-setting] at evry"),
        ("evry: 4\n", "Did you mean every?"),
        ("every: 4\nlog_level: info\n", "Did you mean logLevel?"),
        ("every: 4\nxyz: 1\n", "Known here: authenticateMetrics, every, logLevel, prometheus."),
        ("every: 4\nprometheus: {}\n", "prometheus"),
        ("every: 4\nprometheus: {url: x, cafile: z}\n", ":2: error[bad-setting] at prometheus.cafile"),
        ("every: 4\nprometheus: {url: x, cafile: z}\n", "Did you mean caFile?"),
        ("every: [\n", "settings.yaml"),
        ("- every\n", "keys and values"),
        ("every: 4\n---\nevery: 5\n", "2 documents"),
        ("every: 4\nevery: 5\n", "every"),
    ],
)
def test_wrong_settings_are_told_with_their_place(tmp_path, text, said):
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_settings(Settings, file)
    assert said in str(caught.value)


def test_a_file_that_is_missing_is_told(tmp_path):
    with pytest.raises(SettingsError, match="No such file"):
        read_settings(Settings, tmp_path / "none.yaml")


# What a hub tells


def test_the_context_is_what_a_hub_sets():
    told = {
        "JUPYTERHUB_API_TOKEN": "t",
        "JUPYTERHUB_API_URL": "http://hub:8081/base/hub/api",
        "JUPYTERHUB_BASE_URL": "/base/",
        "JUPYTERHUB_SERVICE_NAME": "culler",
        "JUPYTERHUB_SERVICE_PREFIX": "/base/services/culler/",
        "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:10101",
    }
    context = Context.from_environment(told)
    assert (context.prefix, context.hub_prefix) == ("/base/services/culler/", "/base/hub/")
    assert (context.address, context.port) == ("127.0.0.1", 10101)
    assert "'t'" not in repr(context)
    elsewhere = {key: told[key] for key in told if not key.startswith("JUPYTERHUB_SERVICE_")}
    with pytest.raises(HubError, match="JUPYTERHUB_SERVICE_NAME"):
        Context.from_environment(elsewhere)
    context = Context.from_environment(elsewhere | {"JUPYTERHUB_SERVICE_NAME": "culler"})
    assert (context.prefix, context.port) == ("/base/services/culler/", 8080)


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("http://127.0.0.1:10101", "127.0.0.1", 10101),
        ("http://localhost:10101", "127.0.0.1", 10101),
        (
            "http://hub.jupyterhub:10101",
            "0.0.0.0",
            10101,
        ),  # the name of a Service, which nobody can listen at
        ("http://[::1]:80", "::1", 80),
        ("", "0.0.0.0", 8080),
    ],
)
def test_a_name_means_all_addresses(url, address, port):
    needed = dict.fromkeys(("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_API_URL", "JUPYTERHUB_SERVICE_NAME"), "x")
    context = Context.from_environment({**needed, "JUPYTERHUB_SERVICE_URL": url})
    assert (context.address, context.port) == (address, port)


def test_a_service_that_cannot_begin_says_why(capsys, monkeypatch, tmp_path):
    for name in ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_API_URL", "JUPYTERHUB_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert main(Service, []) == 2
    assert "JUPYTERHUB_API_URL" in capsys.readouterr().err
    assert main(Service, ["--config", str(tmp_path / "none.yaml")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_what_keeps_a_service_from_starting_is_told_as_what_it_is(capsys, monkeypatch, tmp_path):
    """A port that is taken, and a file that may not be written, are two things."""
    state = tmp_path / "state"

    class Remembering(Service):
        async def open(self, stack):
            state.mkdir()
            state.write_text("")

    taken = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    for name in ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_NAME"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://127.0.0.1:1/hub/api")
    monkeypatch.setenv("JUPYTERHUB_SERVICE_URL", url)
    with taken:
        assert main(Service, []) == 2
        told = capsys.readouterr().err
        assert "it cannot listen: Address already in use" in told
        assert str(taken.getsockname()[1]) in told
        assert main(Remembering, []) == 2
        told = capsys.readouterr().err
        assert str(state) in told
        assert "listen" not in told


# Loops


class Passes:
    """Does what it is told, pass by pass, and lets a test wait for them."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.count = 0
        self.over = asyncio.Event()

    async def once(self):
        self.count += 1
        outcome = self.outcomes.pop(0)
        if not self.outcomes:
            self.over.set()
        if isinstance(outcome, Exception):
            raise outcome
        if outcome == "hang":
            await asyncio.Event().wait()


async def run(loop, passes):
    registry = CollectorRegistry()
    task = asyncio.create_task(loop.run(LoopMetrics(registry)))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await passes.over.wait()
        loop.end()
        await task
    counts = {
        outcome: registry.get_sample_value(
            "gpu_workspaces_service_passes_total", {"loop": "test", "outcome": outcome}
        )
        for outcome in ("done", "failed", "too-long")
    }
    return {outcome: int(count) for outcome, count in counts.items()}


async def test_one_bad_pass_does_not_end_a_loop(caplog):
    passes = Passes(HubError("away"), KeyError("x"), TimeoutError(), "fine")
    loop = Loop("test", passes.once, every=timedelta(milliseconds=1))
    assert await run(loop, passes) == {"done": 1, "failed": 3, "too-long": 0}
    assert loop.problem == ""
    assert loop.state()["ok"] is True


async def test_the_same_trouble_is_logged_once(caplog):
    passes = Passes(*[HubError("away")] * 5)
    loop = Loop("test", passes.once, every=timedelta(milliseconds=1))
    assert (await run(loop, passes))["failed"] == 5
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert loop.state() == {"ok": False, "lastDone": None}  # what is wrong is for the log


async def test_a_pass_that_hangs_is_cancelled():
    passes = Passes("hang", "fine")
    loop = Loop("test", passes.once, every=timedelta(), limit=timedelta(milliseconds=10))
    assert await run(loop, passes) == {"done": 1, "failed": 0, "too-long": 1}


async def test_a_service_that_is_up_before_the_hub_does_not_wait_a_whole_turn(monkeypatch):
    monkeypatch.setattr("services.base.loop.FIRST_RETRY", 0.001)
    passes = Passes(*[HubError("not up yet")] * 5, "fine")
    loop = Loop("test", passes.once, every=timedelta(hours=1))
    assert await run(loop, passes) == {"done": 1, "failed": 5, "too-long": 0}


async def test_a_pass_that_fails_later_waits_for_its_turn(monkeypatch):
    monkeypatch.setattr("services.base.loop.FIRST_RETRY", 0.001)
    passes = Passes("fine", HubError("away"), "fine")
    loop = Loop("test", passes.once, every=timedelta(hours=1))
    rests = []

    async def rest(seconds):
        rests.append(round(seconds))
        if passes.over.is_set():
            loop.end()

    monkeypatch.setattr(loop, "_rest", rest)
    assert await run(loop, passes) == {"done": 2, "failed": 1, "too-long": 0}
    assert rests == [3600] * 3


async def test_the_next_pass_can_be_asked_for():
    passes = Passes("fine", "fine")
    loop = Loop("test", passes.once, every=timedelta(hours=1))

    async def ask():
        await passes.once()
        loop.soon()

    loop._once = ask
    assert (await run(loop, passes))["done"] == 2


# The catalog


async def test_a_changed_catalog_is_taken_over_and_a_broken_one_is_not(tmp_path):
    file = tmp_path / "catalog.yaml"
    shutil.copy(CLEAN, file)
    followed = CatalogFile(file)
    first = await followed.current()
    assert await followed.current() is first
    file.write_text("apiVersion: gpu-workspaces/v1\nkind: Catalog\nprofilez: []\n")
    assert await followed.current() is first
    assert "profilez" in followed.problem
    file.write_text(CLEAN.read_text() + "\n")
    assert await followed.current() is not first
    assert followed.problem == ""


async def test_a_mounted_catalog_changes_by_its_link(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"..{name}").mkdir()
        shutil.copy(CLEAN, tmp_path / f"..{name}" / "catalog.yaml")
    data = tmp_path / "..data"
    data.symlink_to("..one")
    (tmp_path / "catalog.yaml").symlink_to("..data/catalog.yaml")
    followed = CatalogFile(tmp_path)
    first = await followed.current()
    data.unlink()
    data.symlink_to("..two")
    assert await followed.current() is not first


def test_a_service_does_not_begin_with_a_broken_catalog(tmp_path):
    with pytest.raises(CatalogError):
        CatalogFile(tmp_path / "none.yaml")


# Pages and API


class Reason(StrEnum):
    NOT_NOW = "not-now"


class Note(BaseModel):
    text: str


class Home(Page):
    def get(self):
        self.show("error.html", status=self.user, message="<b>hello</b>")

    def post(self):
        self.finish({"user": self.user})


class Notes(Api):
    def post(self):
        note = self.read(Note)
        match note.text:
            case "refuse":
                raise Refusal(Reason.NOT_NOW, "Not now, 100%.")
            case "hub":
                raise HubError("no answer: secret detail")
            case "bug":
                raise KeyError("secret detail")
        self.finish({"user": self.model["name"], "text": note.text})


class Everyone(Api):
    scopes = ANYONE

    def get(self):
        self.finish({"user": self.user})


class Greeter(Service):
    title = "Greeter"

    def handlers(self):
        return [("", Home, {}), ("api/notes", Notes, {}), ("api/everyone", Everyone, {})]


class SignIn(HubOAuth):
    """Knows tokens by itself; everything about cookies is JupyterHub's."""

    known = {  # noqa: RUF012
        "ada": {"name": "ada", "kind": "user", "scopes": [ACCESS]},
        "bob": {"name": "bob", "kind": "user", "scopes": [ACCESS]},
        "eve": {"name": "eve", "kind": "user", "scopes": ["self"]},
        "prometheus": {"name": "prometheus", "kind": "service", "scopes": ["read:metrics", ACCESS]},
    }

    async def user_for_token(self, token, use_cache=True, session_id="", *, sync=True):
        found = self.known.get(token)
        return dict(found) if found else None


@pytest.fixture
async def browse():
    """Start the service; gives a client that is not signed in."""
    registry = CollectorRegistry()
    Counter("greetings", "Greetings.", registry=registry)
    service = Greeter(ServiceSettings(), CONTEXT, SimpleNamespace(), registry)
    auth = SignIn(
        api_token="x",
        base_url=CONTEXT.prefix,
        oauth_client_id="service-greeter",
        access_scopes={ACCESS},
        hub_prefix="/hub/",
    )
    server = HTTPServer(application(service, [], auth))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/services/greeter/"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        client.auth_for_test = auth
        yield client
    server.stop()
    await server.close_all_connections()


def cookies_of(client, user):
    """Sign a browser in, as the end of OAuth does."""
    import hmac

    from tornado.web import create_signed_value

    secret = hmac.digest(CONTEXT.token.encode(), b"gpu-workspaces cookies", "sha256")
    signed = create_signed_value(secret, "service-greeter", user).decode()
    client.cookies.set("service-greeter", signed)


async def xsrf_of(client):
    page = await client.get("", headers={"Sec-Fetch-Mode": "navigate"})
    return page.text.partition('name="xsrf" content="')[2].partition('"')[0]


async def test_a_visitor_is_sent_to_the_hub(browse):
    answer = await browse.get("")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/hub/api/oauth2/authorize?")


async def test_a_page_says_who_is_there_and_escapes_what_it_shows(browse):
    cookies_of(browse, "ada")
    answer = await browse.get("")
    assert answer.status_code == 200
    assert "&lt;b&gt;hello" in answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
        {"X-XSRFToken": "guessed"},
    ],
)
async def test_a_cookie_alone_changes_nothing(browse, headers):
    cookies_of(browse, "ada")
    await xsrf_of(browse)
    answer = await browse.post("", headers=headers, content=b"x=1")
    assert answer.status_code == 403


async def test_a_form_of_the_service_itself_is_taken(browse):
    cookies_of(browse, "ada")
    token = await xsrf_of(browse)
    assert token
    answer = await browse.post("", data={"_xsrf": token})
    assert answer.json() == {"user": "ada"}
    answer = await browse.post("api/notes", json={"text": "hi"}, headers={"X-XSRFToken": token})
    assert answer.json() == {"user": "ada", "text": "hi"}


async def test_the_token_of_another_session_is_refused(browse):
    cookies_of(browse, "ada")
    token = await xsrf_of(browse)
    browse.cookies.clear()
    browse.cookies.set("_xsrf", token)
    cookies_of(browse, "bob")
    answer = await browse.post("", data={"_xsrf": token})
    assert answer.status_code == 403


def bearing(token):
    return {"Authorization": f"token {token}"}


async def test_programs_come_with_a_token(browse):
    answer = await browse.post("api/notes", json={"text": "hi"}, headers=bearing("ada"))
    assert answer.json() == {"user": "ada", "text": "hi"}
    for headers in ({}, bearing("unknown")):
        assert (await browse.post("api/notes", json={"text": "hi"}, headers=headers)).status_code == 403


async def test_scopes_decide_who_may(browse):
    assert (await browse.post("api/notes", json={"text": "hi"}, headers=bearing("eve"))).status_code == 403
    assert (await browse.get("api/everyone", headers=bearing("eve"))).json() == {"user": "eve"}
    assert (await browse.get("api/everyone")).status_code == 403
    # A service is no user.
    assert (await browse.get("api/everyone", headers=bearing("prometheus"))).status_code == 403


@pytest.mark.parametrize(
    ("text", "status", "body"),
    [
        ("refuse", 409, {"status": 409, "reason": "not-now", "message": "Not now, 100%."}),
        (
            "hub",
            503,
            {"status": 503, "message": "JupyterHub does not answer as it should. Try again in a minute."},
        ),
        ("bug", 500, {"status": 500, "message": "Something is wrong with this service."}),
    ],
)
async def test_errors_are_told_without_what_is_for_the_log(browse, text, status, body):
    answer = await browse.post("api/notes", json={"text": text}, headers=bearing("ada"))
    assert (answer.status_code, answer.json()) == (status, body)


@pytest.mark.parametrize(
    ("content", "kind", "status", "said"),
    [
        (b'{"text": "hi"}', "text/plain", 415, "application/json"),
        (b'{"text": "hi"}', "", 415, "application/json"),
        (b'{"text"', "application/json", 400, "Invalid JSON"),
        (b"{}", "application/json; charset=utf-8", 400, "text: Field required"),
    ],
)
async def test_bodies_have_to_be_what_they_say(browse, content, kind, status, said):
    headers = bearing("ada") | {"Content-Type": kind}
    answer = await browse.post("api/notes", content=content, headers=headers)
    assert answer.status_code == status
    assert said in answer.json()["message"]


async def test_metrics_are_for_those_who_may_read_them(browse):
    assert (await browse.get("metrics")).status_code == 403
    assert (await browse.get("metrics", headers=bearing("ada"))).status_code == 403
    answer = await browse.get("metrics", headers=bearing("prometheus"))
    assert "greetings_total 0.0" in answer.text


async def test_health_and_the_unknown_are_answered_to_anyone(browse):
    assert (await browse.get("health")).json() == {"status": "ok", "loops": {}}
    answer = await browse.get("nothing/here")
    assert answer.status_code == 404
    assert "Not Found" in answer.text


async def test_the_query_of_a_request_is_not_logged(browse, caplog):
    caplog.set_level("DEBUG", logger="services")
    await browse.get("oauth_callback?code=very-secret&state=x")
    assert "very-secret" not in caplog.text
    assert "oauth_callback" in caplog.text
