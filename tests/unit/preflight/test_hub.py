"""What a running hub is asked, and what follows from its answers."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from hub_ext.cli import main
from hub_ext.errors import HubError, Severity
from services.preflight.ask_hub import ask_hub, ask_running
from services.preflight.checks.hub import CHECKS
from services.preflight.problems import Outcome, judge
from tests.fakes.hub import FakeHub
from tests.unit.preflight.scenes import HUB, scene

BY_CODE = {check.code: check for check in CHECKS}
URL = "http://hub.example:8081"
SCOPES = ("read:hub", "list:services", "read:roles:services")
WELL = {"status": "ok", "loops": {"plan": {"ok": True, "lastDone": None}}}


@pytest.fixture
def fake() -> FakeHub:
    hub = FakeHub()
    hub.about = {"spawner": {"class": "hub_ext.spawner.WorkspaceSpawner", "version": "0.1.0"}}
    hub.services = dict(HUB.services or {})
    hub.public = {"/services/prepuller/health": (200, WELL)}
    return hub


@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}/hub", f"{URL}/hub/"])
async def test_a_hub_that_is_well(fake: FakeHub, url: str) -> None:
    facts, denied = await ask_hub(url, fake.token(*SCOPES), ["prepuller"], transport=fake.transport)
    assert (facts, denied) == (replace(HUB, running=None), {})
    assert {method for method, _ in fake.requests} == {"GET"}


async def test_services_whose_roles_are_not_told_are_unknown(fake: FakeHub) -> None:
    facts, denied = await ask_hub(URL, fake.token(*SCOPES[:2]), [], transport=fake.transport)
    assert facts.services is None
    assert "read:roles:services" in denied["hub_services"]


async def test_what_the_token_may_not_see_is_unknown_not_well(fake: FakeHub) -> None:
    facts, denied = await ask_hub(URL, fake.token("list:users"), [], transport=fake.transport)
    assert (facts.version, facts.spawner, facts.services) == ("5.5.4", None, None)
    assert set(denied) == {"hub_spawner", "hub_services"}
    one = replace(scene(), hub=facts)
    assert {code: judge(check, one).outcome for code, check in BY_CODE.items()} == {
        "hub-version": Outcome.PASSED,
        "hub-spawner": Outcome.NOT_CHECKED,
        "hub-services": Outcome.NOT_CHECKED,
        "hub-health": Outcome.PASSED,
        "unknown-workspaces": Outcome.NOT_CHECKED,
    }


async def test_servers_that_run_or_begin_are_known(fake: FakeHub) -> None:
    for user in ("ada", "bob", "eve"):
        fake.add_user(user)
    fake.add_server("ada")
    fake.add_server("ada", "gpu", ready=False, pending="spawn")
    fake.add_server("bob", "gpu", ready=False, pending="stop")
    denied: dict[str, str] = {}
    token = fake.token("list:users", "read:servers")
    running = await ask_running(URL, token, denied, transport=fake.transport)
    assert running == {("ada", ""), ("ada", "gpu"), ("bob", "gpu")}
    assert denied == {}


@pytest.mark.parametrize("scopes", [("list:users",), ("read:servers",)])
async def test_servers_that_are_not_told_are_unknown_not_absent(
    fake: FakeHub, scopes: tuple[str, ...]
) -> None:
    fake.add_user("ada")
    fake.add_server("ada")
    denied: dict[str, str] = {}
    running = await ask_running(URL, fake.token(*scopes), denied, transport=fake.transport)
    assert running is None
    assert denied["hub_running"]


async def test_where_nothing_runs_nothing_is_known_to_run(fake: FakeHub) -> None:
    fake.add_user("ada")
    denied: dict[str, str] = {}
    token = fake.token("list:users", "read:servers")
    assert await ask_running(URL, token, denied, transport=fake.transport) == frozenset()
    assert denied == {}


async def test_services_are_asked_without_the_token(fake: FakeHub) -> None:
    sent: dict[str, str | None] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        sent[request.url.path] = request.headers.get("Authorization")
        return fake.answer(request)

    await ask_hub(URL, fake.token(*SCOPES), ["prepuller"], transport=httpx.MockTransport(answer))
    assert sent["/hub/api/info"]
    assert sent["/services/prepuller/health"] is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((503, ""), "status 503"),
        ((200, "<html>"), "not what a service of this bundle answers"),
        ((200, ["loops"]), "not what a service of this bundle answers"),
        ((200, {"loops": {"plan": {"ok": False}, "look": {"ok": True}}}), "last pass failed: plan"),
        ((302, ""), "status 302"),
    ],
)
async def test_services_that_are_not_well(fake: FakeHub, answer: tuple[int, object], said: str) -> None:
    fake.public = {"/services/prepuller/health": answer}
    facts, _ = await ask_hub(URL, fake.token(*SCOPES), ["prepuller"], transport=fake.transport)
    (found,) = judge(BY_CODE["hub-health"], replace(scene(), hub=facts)).observations
    assert said in found.evidence


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"name": "something else"}'])
async def test_what_is_no_hub_is_told(body: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    with pytest.raises(HubError):
        await ask_hub(URL, "x", [], transport=transport)


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ({"roles": ["gpu-workspaces-prepuller", "admin"]}, []),
        ({"roles": ["admin"], "admin": True}, ["may do everything"]),
        ({"roles": []}, []),
    ],
)
def test_services_have_no_more_power_than_their_role(service: dict, said: list[str]) -> None:
    """A service without scopes of its own needs no role."""
    found = judge(
        BY_CODE["hub-services"], replace(scene(), hub=replace(HUB, services={"prepuller": service}))
    )
    told = [one.message for one in found.observations]
    wanted = said or (["may do everything"] if "admin" in service["roles"] else [])
    assert all(part in message for part, message in zip(wanted, told, strict=True))


def test_a_version_with_holes_is_a_warning() -> None:
    (found,) = judge(BY_CODE["hub-version"], replace(scene(), hub=replace(HUB, version="5.5.0"))).observations
    assert found.severity is Severity.WARNING


def test_the_command_asks_for_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    assert main(["preflight", "--offline", "--hub", URL]) == 2
    assert "--hub-token-file" in capsys.readouterr().err
