"""Somebody at a browser: signs in at the provider, chooses a workspace, opens pages.

Shell: speaks HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.devcluster.keycloak import Account, send_form
from tests.devcluster.waiting import PATIENCE_SECONDS, Check, until

RADIO = re.compile(r'<input class="form-check-input" type="radio".*?>', re.DOTALL)


class Person:
    """One session; `signed_in` makes it."""

    def __init__(self, url: str, name: str, client: httpx.Client) -> None:
        self.name = name
        self._url, self._client = url, client

    def open(self, path: str) -> httpx.Response:
        """Open a page of the hub's address, wherever it leads by way of the hub."""
        return self._client.get(f"{self._url}{path}")

    def offered(self) -> dict[str, bool]:
        """Workspaces on the page by name, and whether they may be chosen."""
        radios = RADIO.findall(self.open("/hub/spawn").raise_for_status().text)
        names = [(re.findall(r'value="([^"@]+)', radio)[0], " disabled" not in radio) for radio in radios]
        return dict(names)

    def start(self, profile: str, *, check: Check) -> None:
        """Send the page's form; ends when the workspace answers behind the proxy."""
        self.open("/hub/spawn").raise_for_status()
        sent = self._client.post(
            f"{self._url}/hub/spawn",
            params={"_xsrf": self._xsrf()},
            files={"profile": (None, profile)},
            follow_redirects=False,  # the page of the wait answers as a browser's script needs it
        )
        assert sent.status_code == 302, sent.text[:2000]

        def missing() -> str | None:
            server = self.ask("GET", f"users/{self.name}")["servers"].get("")
            if server is None:
                told = self.open(f"/hub/spawn-pending/{self.name}").text
                raise AssertionError(f"the start of {profile} failed: {re.sub('<[^>]+>', ' ', told)[-2000:]}")
            return None if server["ready"] else f"the hub says {server}"

        until(missing, what=f"{profile} to be ready", check=check)

    def stop(self, *, check: Check) -> None:
        """Stop the workspace; ends when the hub has forgotten it."""
        self.ask("DELETE", f"users/{self.name}/server")

        def missing() -> str | None:
            left = self.ask("GET", f"users/{self.name}")["servers"]
            return f"there is still {left}" if left else None

        until(missing, what="the workspace to be gone", check=check)

    def token(self) -> str:
        """Make a token, as the hub's page does."""
        return str(self.ask("POST", f"users/{self.name}/tokens", {"note": "made by a test"})["token"])

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the hub's API from one of its pages."""
        headers = {"X-XSRFToken": self._xsrf(), "Referer": f"{self._url}/hub/home"}
        answer = self._client.request(method, f"{self._url}/hub/api/{path}", headers=headers, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json() if answer.content else None

    def _xsrf(self) -> str:
        return str(self._client.cookies.get("_xsrf", path="/hub/"))


@contextmanager
def signed_in(url: str, account: Account) -> Iterator[Person]:
    """Go the way of a browser: hub, provider's form, hub."""
    with httpx.Client(timeout=PATIENCE_SECONDS, follow_redirects=True, trust_env=False) as client:
        form = client.get(f"{url}/hub/oauth_login")
        answer = send_form(client, form, account)
        assert answer.is_success, answer.text[:2000]
        yield Person(url, account.name, client)
