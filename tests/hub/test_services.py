"""What all services share, as a process that a real hub runs: sign-in, rights, periodic work, its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from tests.devcluster.waiting import PATIENCE_SECONDS, until
from tests.hub.harness import Hub

SECONDS = PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def running(hub: Hub) -> None:
    """Wait until the hub has started the service, or has started it again."""

    def missing() -> str | None:
        hub.check()
        try:
            return None if httpx.get(f"{hub.greeter}health", timeout=5).is_success else "it answers an error"
        except httpx.TransportError as error:
            return repr(error)

    until(missing, what="the service to answer", timeout=SECONDS)


class Visitor:
    """A browser with the hub and the service behind one address, as the proxy puts them."""

    def __init__(self, hub: Hub, client: httpx.Client) -> None:
        self.hub = hub
        self.client = client
        self.home = hub.greeter

    def address(self, url: str) -> str:
        """Where the proxy would send it."""
        path = urlsplit(url).path
        base = self.hub.greeter if path.startswith(urlsplit(self.hub.greeter).path) else self.hub.base
        parts = urlsplit(base)
        return urlsplit(url)._replace(scheme=parts.scheme, netloc=parts.netloc).geturl()

    def get(self, url: str, **headers: str) -> httpx.Response:
        """Follow all redirects, as a browser that goes to a page."""
        for _ in range(20):
            answer = self.client.get(self.address(url), headers={"Sec-Fetch-Mode": "navigate", **headers})
            if not answer.has_redirect_location:
                return answer
            url = urljoin(str(answer.url), answer.headers["Location"])
        raise AssertionError(f"too many redirects, the last to {url}")


@contextmanager
def visitor(hub: Hub, user: str) -> Iterator[Visitor]:
    with hub.browser(user) as browser:
        yield Visitor(hub, browser.client)


def xsrf(page: httpx.Response) -> str:
    return page.text.partition('name="xsrf" content="')[2].partition('"')[0]


def token_of(hub: Hub, user: str, *scopes: str) -> dict[str, str]:
    answer = hub.api("POST", f"users/{user}/tokens", {"scopes": list(scopes)})
    return {"Authorization": f"token {answer.raise_for_status().json()['token']}"}


def test_a_user_is_signed_in_by_the_hub(hub: Hub, member: str) -> None:
    with visitor(hub, member) as browser:
        page = browser.get(browser.home)
    assert page.status_code == 200
    assert f"for {member}" in page.text
    assert "Hello from the settings" in page.text


def test_somebody_else_s_site_changes_nothing(hub: Hub, member: str) -> None:
    with visitor(hub, member) as browser:
        token = xsrf(browser.get(browser.home))
        foreign = {
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Site": "cross-site",
            "Origin": "https://evil.test",
        }
        for fields in ({}, {"_xsrf": "guessed"}):
            assert browser.client.post(browser.home, data=fields, headers=foreign).status_code == 403
        own = browser.client.post(browser.home, data={"_xsrf": token})
    assert (own.status_code, own.json()) == (200, {"greeted": member})


def test_a_token_counts_where_its_scopes_reach(hub: Hub, member: str) -> None:
    allowed = token_of(hub, member, "access:services!service=greeter")
    other = token_of(hub, member, "read:users!user")
    address = f"{hub.greeter}api/count"
    assert httpx.get(address, headers=allowed, timeout=SECONDS).json()["by"] == member
    assert httpx.get(address, headers=other, timeout=SECONDS).status_code == 403
    assert httpx.get(address, timeout=SECONDS).status_code == 403


def test_the_service_does_its_work_with_its_own_rights(hub: Hub, member: str) -> None:
    headers = token_of(hub, member, "access:services!service=greeter")

    def missing() -> str | None:
        users = httpx.get(f"{hub.greeter}api/count", headers=headers, timeout=SECONDS).json()["users"]
        return None if users else "no pass is done"

    until(missing, what="the service to count users", timeout=SECONDS)
    health = httpx.get(f"{hub.greeter}health", timeout=SECONDS).json()
    assert health["loops"]["count"]["ok"] is True


def test_metrics_are_not_for_everyone(hub: Hub) -> None:
    assert httpx.get(f"{hub.greeter}metrics", timeout=SECONDS).status_code == 403
    token = {"Authorization": f"token {hub.token}"}
    found = httpx.get(f"{hub.greeter}metrics", headers=token, timeout=SECONDS)
    assert 'gpu_workspaces_service_passes_total{loop="count",outcome="done"}' in found.text


def test_a_service_ends_in_order_and_the_hub_starts_it_again(hub: Hub) -> None:
    def process() -> int | None:
        entry = hub.api("GET", "services/greeter").raise_for_status().json()
        return entry["pid"] or None

    first = process()
    assert first
    os.kill(first, signal.SIGTERM)
    until(
        lambda: None if process() not in {None, first} else "it is the same or none",
        what="the hub to start it again",
        timeout=SECONDS,
    )
    assert "ended: service=greeter" in hub.log
    assert "Traceback" not in hub.log.rpartition("ended: service=greeter")[0][-4000:]
