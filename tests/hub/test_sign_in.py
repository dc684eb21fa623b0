"""Sign-in at a real Keycloak: its groups become teams, and who leaves a group loses what it gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.devcluster.keycloak import Account, Keycloak, build_realm, running_keycloak, send_form
from tests.devcluster.ports import free_port
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.hub.conftest import CATALOG
from tests.hub.harness import Hub

REALM, CLIENT, SECRET = "people", "hub", "of-the-client"
ADA = Account(name="ada", password="ada-of-the-tests", groups=("nlp",))
BOB = Account(name="bob", password="bob-of-the-tests")


@pytest.fixture(scope="module")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    with running_keycloak(tmp_path_factory.mktemp("keycloak")) as found:
        yield found


@pytest.fixture(scope="module")
def oauth_hub(
    keycloak: Keycloak,
    hub_kubeconfig: Path,
    hub_namespace: str,
    homes: None,
    notebook_port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Hub]:
    """A hub whose people are those of the Keycloak."""
    port = free_port()
    callback = f"http://127.0.0.1:{port}/base/hub/oauth_callback"
    keycloak.add_realm(
        build_realm(
            REALM, client_id=CLIENT, client_secret=SECRET, redirect_uris=[callback], accounts=[ADA, BOB]
        )
    )
    folder = tmp_path_factory.mktemp("oauth-hub")
    catalog = folder / "catalog.yaml"
    catalog.write_text(CATALOG.read_text().replace("groups: [nlp]", "groups: [/nlp]"))
    hub = Hub(
        folder,
        kubeconfig=hub_kubeconfig,
        namespace=hub_namespace,
        catalog=catalog,
        notebook_port=notebook_port,
        port=port,
        oauth={
            "client_id": CLIENT,
            "client_secret": SECRET,
            "oauth_callback_url": callback,
            "authorize_url": keycloak.endpoint(REALM, "auth"),
            "token_url": keycloak.endpoint(REALM, "token"),
            "userdata_url": keycloak.endpoint(REALM, "userinfo"),
        },
    )
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


@contextmanager
def signed_in(hub: Hub, account: Account) -> Iterator[httpx.Client]:
    """Go the way of a browser: hub, Keycloak's form, hub."""
    with httpx.Client(timeout=PATIENCE_SECONDS, follow_redirects=True, trust_env=False) as client:
        form = client.get(f"{hub.base}/oauth_login")
        answer = send_form(client, form, account)
        assert answer.is_success, answer.text[:2000]
        yield client


def offered(hub: Hub, client: httpx.Client) -> set[str]:
    """Names of the profiles that the page offers and that are not locked."""
    page = client.get(f"{hub.base}/spawn").text
    radios = re.findall(r'<input class="form-check-input" type="radio".*?>', page, re.DOTALL)
    return {re.findall(r'value="([^"@]+)', radio)[0] for radio in radios if " disabled" not in radio}


def test_groups_of_the_provider_are_teams(oauth_hub: Hub) -> None:
    with signed_in(oauth_hub, ADA) as ada, signed_in(oauth_hub, BOB) as bob:
        assert oauth_hub.api("GET", "users/ada").json()["groups"] == ["/nlp"]
        assert oauth_hub.api("GET", "users/bob").json()["groups"] == []
        assert "full" in offered(oauth_hub, ada)
        assert "full" not in offered(oauth_hub, bob)


def test_who_leaves_a_group_loses_it_while_the_session_lives_on(oauth_hub: Hub, keycloak: Keycloak) -> None:
    with signed_in(oauth_hub, ADA) as ada:
        assert "full" in offered(oauth_hub, ada)
        keycloak.set_groups(REALM, ADA.name, [])
        try:
            answer = oauth_hub.refused_start(ADA.name, {"profile": "full"})
            assert answer.status_code == 403, answer.text
            assert ada.get(f"{oauth_hub.base}/home").is_success
            assert "full" not in offered(oauth_hub, ada)
        finally:
            keycloak.set_groups(REALM, ADA.name, ["nlp"])
