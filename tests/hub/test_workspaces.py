"""What may I start: the page's facts for programs, to those who may ask."""

from __future__ import annotations

import html
import json
from collections.abc import Callable

import httpx
import pytest

from hub_ext.form.answer import Offered, WorkspaceList
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.hub.harness import Browser, Hub, checked_on


def ask(hub: Hub, user: str, token: str | None, query: str = "") -> httpx.Response:
    headers = {"Authorization": f"token {token}"} if token else {}
    return httpx.get(
        f"{hub.base}/api/users/{user}/workspaces{query}", headers=headers, timeout=PATIENCE_SECONDS
    )


def make_token(browser: Browser, user: str, *scopes: str) -> str:
    """A token of the user's own; without scopes with all of their rights."""
    answer = browser.client.post(
        f"{browser.base}/api/users/{user}/tokens",
        headers={"X-XSRFToken": browser.client.cookies.get("_xsrf", path="/base/hub/") or ""},
        json={"note": "tests", **({"scopes": list(scopes)} if scopes else {})},
    )
    return str(answer.raise_for_status().json()["token"])


def workspaces(answer: httpx.Response) -> dict[str, Offered]:
    found = WorkspaceList.model_validate_json(answer.raise_for_status().text)
    return {f"{one.profile}@{one.version}": one for one in found.workspaces}


@pytest.fixture
def token(hub: Hub, member: str) -> str:
    with hub.browser(member) as browser:
        return make_token(browser, member)


def test_one_s_own_token_and_cookie_say_what_the_page_says(hub: Hub, member: str, token: str) -> None:
    found = workspaces(ask(hub, member, token))
    with hub.browser(member) as browser:
        page = html.unescape(browser.spawn_page().text)
        xsrf = {"X-XSRFToken": browser.client.cookies.get("_xsrf", path="/base/hub/") or ""}
        by_cookie = browser.client.get(f"{hub.base}/api/users/{member}/workspaces", headers=xsrf)
        without = browser.client.get(
            f"{hub.base}/api/users/{member}/workspaces", headers={"Sec-Fetch-Mode": "cors"}
        )
    assert "<h1>Choose a workspace</h1>" in page
    assert workspaces(by_cookie) == found
    assert by_cookie.headers["Cache-Control"] == "no-store"
    assert without.status_code == 403
    assert [name for name, one in found.items() if one.selected] == checked_on(page) == ["cpu@1"]
    for name, one in found.items():
        assert f'value="{name}"' in page
        assert one.title in page
        if one.gpu:
            assert one.gpu.text in page


def test_what_it_says_to_send_starts_it(hub: Hub, member: str, token: str) -> None:
    options = workspaces(ask(hub, member, token))["cpu@1"].options
    assert hub.start_server(member, options).status_code in {201, 202}
    record = hub.wait_until_ready(member)
    assert record["user_options"] == options
    hub.stop_server(member)


def test_who_may_ask_for_whom(hub: Hub, member: str, token: str, outsider: str) -> None:
    with hub.browser(outsider) as browser:
        theirs = make_token(browser, outsider)
        blind = make_token(browser, outsider, f"read:users:activity!user={outsider}")
    assert ask(hub, member, hub.token).status_code == 200, "an administrator may ask for all"
    assert ask(hub, member, theirs).status_code == 404, "whether others exist is not told"
    assert ask(hub, "nobody-of-that-name", theirs).status_code == 404
    assert ask(hub, "nobody-of-that-name", hub.token).status_code == 404
    assert ask(hub, outsider, blind).status_code == 403
    assert ask(hub, member, None).status_code == 403
    assert ask(hub, member, "wrong").status_code == 403
    assert "full@2" in workspaces(ask(hub, member, token))
    assert "full@2" not in workspaces(ask(hub, outsider, theirs))
    assert "full@2" not in workspaces(ask(hub, outsider, hub.token)), "told for the user, not for who asks"


def test_asking_for_a_server_that_is_not_there_makes_none(hub: Hub, member: str, token: str) -> None:
    answer = ask(hub, member, token, "?server=more")
    assert WorkspaceList.model_validate_json(answer.text).server == "more"
    assert "more" not in hub.api("GET", f"users/{member}?include_stopped_servers").json()["servers"]
    assert ask(hub, member, token, "?server=" + "x" * 300).status_code == 400
    assert ask(hub, member, token, "?server=a%0Ab").status_code == 400


def test_other_answers_are_told_as_a_link_has_them(hub: Hub, member: str, token: str) -> None:
    usual = workspaces(ask(hub, member, token))["full@2"]
    asked = ask(hub, member, token, "?opt-profile=full&opt-cards=two")
    other = workspaces(asked)["full@2"]
    assert (usual.gpu and usual.gpu.count, other.gpu and other.gpu.count) == (1, 2)
    assert (other.selected, other.options["cards"]) == (True, "two")
    wrong = ask(hub, member, token, "?opt-profile=full&opt-cards=nine")
    (notice,) = WorkspaceList.model_validate_json(wrong.text).notices
    assert notice.kind.value == "warning"
    assert "there is no option “nine”" in notice.text


def test_limits_are_told_with_their_reason(hub: Hub, new_user: Callable[..., str]) -> None:
    user = new_user("tight")
    before = workspaces(ask(hub, user, hub.token, "?server=more"))["cpu@1"]
    assert before.now is not None
    assert (before.may_start, before.now.room.user, before.now.supply.value) == (True, 1, "unknown")
    hub.start_server(user, {"profile": "cpu"})
    hub.wait_until_ready(user)
    after = workspaces(ask(hub, user, hub.token, "?server=more"))["cpu@1"]
    assert after.refused is not None
    assert (after.may_start, after.refused.reason) == (False, "user-limit")
    assert after.refused.text in hub.refused_start(user, {"profile": "cpu"}, server="more").json()["message"]
    mine = workspaces(ask(hub, user, hub.token))["cpu@1"]
    assert mine.may_start, "what runs under the name would be replaced"
    hub.stop_server(user)


def test_no_setting_of_a_pod_and_no_reference_of_an_image_is_told(hub: Hub, member: str, token: str) -> None:
    text = ask(hub, member, token).text
    assert json.loads(text)["workspaces"]
    for hidden in ("TRICKY", "sha256", "registry.example.com", "nodeSelector", "CC-1", hub.token):
        assert hidden not in text
