"""Attacks on a real hub and its API server that no other test makes; `tests/attacks.py` lists all of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

from tests.devcluster.kube import KubeCluster
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.hub.harness import IS_5, Hub, error_on
from tests.hub.test_services import Visitor, running, token_of, visitor

__all__ = ["running"]

BASE = "registry.example.com/base@sha256:" + "1" * 64
MARKUP = "<img src=x onerror=alert(1)>{{ 7*7 }}${7*7}\"'"
ODD_NAMES = ("eve{user.__class__}--$(HOME)", "Eve Ünïcode=x,y" + "e" * 100)


@pytest.fixture(autouse=True)
def handled(hub: Hub) -> Iterator[None]:
    """Whatever is sent, the hub answers it; nothing is an error that it did not expect."""
    before = len(hub.log)
    yield
    hub.check()
    assert "Traceback" not in hub.log[before:]


def nothing_started(hub: Hub, cluster: KubeCluster, namespace: str, user: str) -> bool:
    """Say whether a user has neither a server that is up nor a pod."""
    found = cluster.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    pods = [p for p in found if p["metadata"].get("annotations", {}).get("hub.jupyter.org/username") == user]
    record = hub.server(user)
    return not pods and (record is None or not (record["pending"] or record["ready"]))


BODIES: tuple[dict[str, Any], ...] = (
    {"__proto__": {"profile": "full"}},
    {"profile": "cpu", "__proto__": {"admin": True}},
    {"constructor": {"prototype": {"profile": "full"}}},
    {"profile": "cpu", "size": {"$ne": ""}},
    {"profile": "cpu", "size": None, "extra": {"a": [[[[1]]]]}},
    {"profile": True},
    {"profile": "cpu", "size": 1e308},
    {"profile": "cpu\n", "size": "large"},
    {"profile": "cpu", "size": "large\x00"},
    {"profile": "cpu", "x" * 5000: "y"},
    {"profile": "x" * 100_000},
)


def test_options_of_any_shape_start_nothing(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, outsider: str
) -> None:
    for body in BODIES:
        answer = hub.refused_start(outsider, body)
        assert answer.status_code in {400, 403}, str(body)[:80]
        assert len(answer.text) < 2000
        assert "Traceback" not in answer.text
    assert nothing_started(hub, cluster, hub_namespace, outsider)


IMAGES = (
    BASE.replace("registry.example.com", "registry.example.com.evil.test"),
    BASE.replace("registry.example.com", "registry.example.com:5000"),
    BASE.replace("registry", "r\N{CYRILLIC SMALL LETTER IE}gistry"),
    BASE.replace("base@", "BASE@"),
    BASE.replace("@sha256:" + "1" * 64, ":latest"),
    BASE.replace("1" * 64, "4" * 64),
    BASE[:-1],
    BASE + "1",
    BASE + "\n",
    f" {BASE}",
    f"{BASE} --privileged",
    f"evil.test/{BASE}",
    "base",
    "docker.io/library/python:3",
)


def test_an_image_that_is_not_listed_is_never_run(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    for image in IMAGES:
        answer = hub.refused_start(member, {"profile": "full", "image": image})
        assert answer.status_code in {400, 403}, ascii(image)
    assert nothing_started(hub, cluster, hub_namespace, member)


PARTS_OF_PODS: tuple[dict[str, Any], ...] = (
    {"labels": {"hub.jupyter.org/network-access-proxy-api": "true"}},
    {"extra_labels": {"hub.jupyter.org/network-access-singleuser": "true"}},
    {"kueue.x-k8s.io/queue-name": "other-team"},
    {"priorityClassName": "system-node-critical"},
    {"kubespawner_override": {"privileged": True}},
    {"environment": {"LD_PRELOAD": "/tmp/x.so"}},
    {"namespace": "kube-system"},
    {"subPath": "../other"},
)


def test_no_part_of_a_pod_is_the_user_s_to_say(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    for part in PARTS_OF_PODS:
        assert hub.refused_start(member, {"profile": "cpu", **part}).status_code in {400, 403}, str(part)
    assert nothing_started(hub, cluster, hub_namespace, member)


@pytest.fixture
def odd_user(hub: Hub, request: pytest.FixtureRequest) -> Iterator[str]:
    """A user of an odd name, as the hub keeps it; gone afterwards."""
    answer = hub.api("POST", "users", {"usernames": [request.param]})
    (user,) = answer.raise_for_status().json()
    yield user["name"]
    hub.api("DELETE", f"users/{quote(user['name'], safe='')}")


@pytest.mark.parametrize("odd_user", ODD_NAMES, indirect=True, ids=ascii)
def test_a_name_is_only_a_name(hub: Hub, cluster: KubeCluster, hub_namespace: str, odd_user: str) -> None:
    path = quote(odd_user, safe="")
    assert hub.start_server(path, {"profile": "cpu"}).status_code in {201, 202}
    hub.wait_until_ready(path)
    pods = cluster.get(f"/api/v1/namespaces/{hub_namespace}/pods")["items"]
    (pod,) = [
        p for p in pods if p["metadata"].get("annotations", {}).get("hub.jupyter.org/username") == odd_user
    ]
    access = {key: v for key, v in pod["metadata"]["labels"].items() if "network-access" in key}
    assert set(access) <= {"hub.jupyter.org/network-access-hub"}
    claims = cluster.get(f"/api/v1/namespaces/{hub_namespace}/persistentvolumeclaims")["items"]
    mounted = [
        v["persistentVolumeClaim"]["claimName"]
        for v in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in v
    ]
    owners = [
        c["metadata"]["annotations"]["hub.jupyter.org/username"]
        for c in claims
        if c["metadata"]["name"] in mounted
    ]
    assert owners == [odd_user]
    hub.stop_server(path)


def test_what_was_sent_is_shown_as_text(hub: Hub, member: str) -> None:
    with hub.browser(member) as browser:
        form = browser.refused_form({"profile": MARKUP})
        link = browser.spawn_page(f"?{'' if IS_5 else 'opt-'}profile={quote(MARKUP)}")
    for page in (form, link):
        assert "<img src=x" not in page.text
        assert "49" not in error_on(page.text)
    rest = hub.refused_start(member, {"profile": MARKUP})
    assert rest.headers["Content-Type"].startswith("application/json")


def test_somebody_else_s_site_starts_nothing(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    with hub.browser(member) as browser:
        for mode, site in itertools.product(("navigate", "no-cors", "cors"), ("cross-site", "same-site")):
            headers = {"Sec-Fetch-Mode": mode, "Sec-Fetch-Site": site, "Origin": "https://evil.test"}
            form = browser.client.post(f"{hub.base}/spawn", data={"profile": "cpu@1"}, headers=headers)
            rest = browser.client.post(
                f"{hub.base}/api/users/{member}/server",
                content=json.dumps({"profile": "cpu"}),
                headers={**headers, "Content-Type": "text/plain"},
            )
            assert (form.status_code, rest.status_code) == (403, 403), (mode, site)
    assert nothing_started(hub, cluster, hub_namespace, member)


TARGETS = (
    "//evil.test",
    "/\\evil.test",
    "https:evil.test",
    "http://hub@evil.test",
    "%2f%2fevil.test",
    "https://evil.test//x",
    "javascript:alert(1)",
)


def places_led_to(browser: Visitor, address: str) -> Iterator[str]:
    """Follow redirects, and give each as it was sent."""
    url = address
    for _ in range(10):
        answer = browser.client.get(browser.address(url), headers={"Sec-Fetch-Mode": "navigate"})
        if not answer.has_redirect_location:
            return
        yield answer.headers["Location"]
        url = str(answer.url.join(answer.headers["Location"]))


def test_sign_in_leads_nowhere_else(hub: Hub, member: str) -> None:
    """Around signing in at a service, a visitor sees pages of the hub and of the service only."""
    for target in TARGETS:
        with visitor(hub, member) as browser:
            for address in (f"{hub.greeter}?next={target}", f"{hub.base}/login?next={target}"):
                places = list(places_led_to(browser, address))
                assert places, f"{address} leads nowhere at all"
                for place in places:
                    assert "evil.test" not in urlsplit(place).netloc, f"{address} leads to {place}"
                    assert not place.startswith(("//", "/\\", "javascript:")), f"{address} leads to {place}"


def test_a_sign_in_that_somebody_else_began_is_not_finished(hub: Hub, member: str, outsider: str) -> None:
    """The state of another visitor's sign-in, and one that is made up, sign nobody in."""
    with visitor(hub, outsider) as other:
        begun = other.client.get(hub.greeter, headers={"Sec-Fetch-Mode": "navigate"})
        states = [parse_qs(urlsplit(begun.headers["Location"]).query)["state"][0], "e30="]
    with visitor(hub, member) as browser:
        for state in states:
            answer = browser.client.get(f"{hub.greeter}oauth_callback", params={"code": "x", "state": state})
            assert answer.status_code in {400, 403}
        assert "Set-Cookie" not in answer.headers or "access_token" not in answer.headers["Set-Cookie"]


def test_a_narrow_token_of_a_user_opens_nothing_of_another(hub: Hub, member: str, outsider: str) -> None:
    own = token_of(hub, member, "access:services!service=greeter")
    for path in (f"users/{outsider}", f"users/{outsider}/tokens", "users", "services", "proxy"):
        answer = httpx.get(f"{hub.base}/api/{path}", headers=own, timeout=PATIENCE_SECONDS)
        assert answer.status_code in {403, 404}, path
    address = f"{hub.base}/api/users/{outsider}/server"
    started = httpx.post(address, headers=own, timeout=PATIENCE_SECONDS)
    assert started.status_code in {403, 404}


def test_no_secret_is_in_the_hub_s_log(hub: Hub, member: str) -> None:
    token = token_of(hub, member, "read:users!user")["Authorization"].removeprefix("token ")
    headers = {"Authorization": f"token {token}"}
    own = httpx.get(f"{hub.base}/api/users/{member}", headers=headers, timeout=PATIENCE_SECONDS)
    assert own.is_success
    httpx.get(f"{hub.base}/spawn", params={"token": token}, timeout=PATIENCE_SECONDS)
    assert hub.token not in hub.log
    assert "JUPYTERHUB_API_TOKEN" not in hub.log
