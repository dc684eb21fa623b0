"""People sign in at Keycloak as a hub would let them, and lose groups and access while they are signed in.

Needs no cluster; it is here because the tiers that run twice are no place for a start of this length.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.devcluster.errors import ApiError
from tests.devcluster.keycloak import Account, Keycloak, build_realm, running_keycloak
from tests.devcluster.waiting import PATIENCE_SECONDS

REALM, CLIENT, SECRET = "hub", "jupyterhub", "only-for-this-test"
CALLBACK = "http://127.0.0.1:9/hub/oauth_callback"
ADA = Account(name="ada", password="ada's", groups=("nlp", "vision"))
SAM = Account(name="sam", password="sam's")


@pytest.fixture(scope="module")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    with running_keycloak(tmp_path_factory.mktemp("keycloak")) as keycloak:
        keycloak.add_realm(
            build_realm(
                REALM,
                client_id=CLIENT,
                client_secret=SECRET,
                redirect_uris=[CALLBACK],
                accounts=[ADA, SAM],
                groups=["ops"],
            )
        )
        yield keycloak


def ask_to_sign_in(keycloak: Keycloak, account: Account, *, password: str = "") -> httpx.Response:
    """What Keycloak answers to a name and a password on its page."""
    with httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS) as browser:
        query = {"client_id": CLIENT, "response_type": "code", "scope": "openid", "redirect_uri": CALLBACK}
        page = browser.get(keycloak.endpoint(REALM, "auth"), params=query).raise_for_status()
        form = re.search(r'<form[^>]*\saction="([^"]+)"', page.text)
        assert form, page.text
        # Its cookies are for https only; a browser makes an exception for this machine's own address.
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
        given = {"username": account.name, "password": password or account.password}
        return browser.post(html.unescape(form[1]), data=given, headers={"Cookie": cookies})


def tokens(keycloak: Keycloak, account: Account) -> dict[str, Any]:
    """Sign in, and trade the code that comes back for tokens, as a hub does."""
    answer = ask_to_sign_in(keycloak, account)
    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"].startswith(CALLBACK)
    (code,) = parse_qs(urlsplit(answer.headers["Location"]).query)["code"]
    return trade(keycloak, grant_type="authorization_code", code=code, redirect_uri=CALLBACK).json()


def trade(keycloak: Keycloak, **given: str) -> httpx.Response:
    url = keycloak.endpoint(REALM, "token")
    return httpx.post(url, data=given, auth=(CLIENT, SECRET), trust_env=False, timeout=PATIENCE_SECONDS)


def person(keycloak: Keycloak, access_token: str) -> dict[str, Any]:
    """What a hub is told of the person who signed in."""
    headers = {"Authorization": f"Bearer {access_token}"}
    answer = httpx.get(
        keycloak.endpoint(REALM, "userinfo"), headers=headers, trust_env=False, timeout=PATIENCE_SECONDS
    )
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


def test_groups_come_with_the_person_and_change_while_signed_in(keycloak: Keycloak) -> None:
    given = tokens(keycloak, ADA)
    found = person(keycloak, given["access_token"])
    assert found["preferred_username"] == "ada"
    assert sorted(found["groups"]) == ["/nlp", "/vision"]
    keycloak.set_groups(REALM, "ada", ["ops"])
    assert person(keycloak, given["access_token"])["groups"] == ["/ops"]
    keycloak.set_groups(REALM, "ada", [])
    assert "groups" not in person(keycloak, given["access_token"])
    keycloak.set_groups(REALM, "ada", ADA.groups)


def test_who_has_no_group_has_no_claim(keycloak: Keycloak) -> None:
    assert "groups" not in person(keycloak, tokens(keycloak, SAM)["access_token"])


def test_a_wrong_password_is_refused(keycloak: Keycloak) -> None:
    answer = ask_to_sign_in(keycloak, SAM, password="guessed")
    assert answer.status_code == 200
    assert "Invalid username or password" in answer.text


def test_who_is_locked_out_can_neither_refresh_nor_sign_in(keycloak: Keycloak) -> None:
    refresh = tokens(keycloak, SAM)["refresh_token"]
    keycloak.set_enabled(REALM, "sam", False)
    assert trade(keycloak, grant_type="refresh_token", refresh_token=refresh).status_code == 400
    assert ask_to_sign_in(keycloak, SAM).status_code == 200
    keycloak.set_enabled(REALM, "sam", True)
    assert tokens(keycloak, SAM)["access_token"]


def test_an_unknown_person_is_named(keycloak: Keycloak) -> None:
    with pytest.raises(ApiError, match="there is no 'nobody'"):
        keycloak.end_sessions(REALM, "nobody")
