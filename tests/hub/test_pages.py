"""What the scripts of our pages rely on, on both lines of the hub: names, tokens, events, requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from tests.devcluster.waiting import until
from tests.hub.harness import SPAWN_SECONDS, Browser, Hub

TOKEN = re.compile(r'xsrf_token: "([^"]+)"')
"""In `window.jhdata`, which the hub's own template fills."""


@pytest.fixture
def browser(hub: Hub, member: str) -> Iterator[Browser]:
    with hub.browser(member) as found:
        yield found


def as_script(browser: Browser, page: str) -> dict[str, str]:
    """Headers of a request as a script of a page sends it."""
    match = TOKEN.search(page)
    assert match, "the page's script would have no token"
    return {"X-XSRFToken": match[1], "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}


def test_the_spawn_page_fetches_itself_anew_for_other_answers(browser: Browser) -> None:
    page = browser.spawn_page().text
    assert 'id="gpu-workspaces"' in page
    assert re.search(r'<form[^>]+id="spawn_form"', page)
    assert re.search(r"<button[^>]+type=\"submit\"|<input[^>]+type=\"submit\"", page)
    headers = as_script(browser, page)
    address = f"{browser.base}/spawn?opt-profile=cpu%401&opt-size=large"
    fresh = browser.client.get(address, headers=headers)
    assert fresh.status_code == 200
    card = fresh.text.partition('value="cpu@1"')[2].partition('class="gw-card')[0]
    assert "1 GiB memory" in card
    assert re.search(r'<option value="large"\s+selected', card)


def test_the_wait_follows_its_events_and_cancels_as_its_script_does(
    hub: Hub, browser: Browser, member: str
) -> None:
    assert browser.post_form({"profile": "stuck@1"}).status_code == 302
    page = browser.client.get(f"{hub.base}/spawn-pending/{member}").text
    for name in ("gw-wait", "gw-title", "gw-now", "gw-steps", "gw-log", "gw-again", "gw-cancel", "gw-hint"):
        assert f'id="{name}"' in page
    assert "Starting Has no node" in page
    site = hub.base.partition("/base/")[0]
    found = re.search(r'data-progress-url="([^"]+)"', page)
    assert found
    headers = as_script(browser, page)
    with browser.client.stream("GET", f"{site}{found[1]}", headers=headers) as events:
        told = first_event(events)
    assert told["message"]
    steps = re.findall(r'data-stages="([^"]+)"', page)
    assert any(told["stage"] in step.split() for step in steps)
    script = browser.client.get(f"{hub.base}/static/js/jhapi.js").text
    assert "JHAPI.prototype.stop_server" in script
    assert "JHAPI.prototype.stop_named_server" in script
    stopped = browser.client.delete(f"{hub.base}/api/users/{member}/server", headers=headers)
    assert stopped.status_code in {202, 204}

    def missing() -> str | None:
        """Look as the script does: the wait is left once the hub offers the choice again."""
        answer = browser.client.get(f"{hub.base}/spawn/{member}", headers=headers, follow_redirects=True)
        return f"it leads to {answer.url}" if "/spawn-pending/" in str(answer.url) else None

    until(missing, what="the canceled start to be gone", check=hub.check, timeout=SPAWN_SECONDS)


def first_event(events: httpx.Response) -> dict[str, str]:
    """The first event that says what the start waits for."""
    for line in events.iter_lines():
        if line.startswith("data: "):
            told: dict[str, str] = json.loads(line.removeprefix("data: "))
            if told.get("stage"):
                return told
    raise AssertionError("the events ended without a word")
