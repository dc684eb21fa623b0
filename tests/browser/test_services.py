"""The services of the demo: processes of its hub, with no more rights than they declare, behind its proxy."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SignIn
from tests.demo.hub import Hub
from tests.demo.services import SERVICES
from tests.demo.users import ADA
from tests.devcluster.waiting import until


@pytest.mark.parametrize("name", SERVICES)
def test_services_do_their_work_with_the_rights_that_they_declare(hub: Hub, name: str) -> None:
    def missing() -> str | None:
        answer = httpx.get(f"{hub.url}/services/{name}/health", timeout=30, trust_env=False)
        if not answer.is_success:
            return f"HTTP {answer.status_code}"
        loops = answer.json()["loops"]
        late = [loop for loop, state in loops.items() if not (state["ok"] and state["lastDone"])]
        return f"no good pass of {late}; the hub's log: {hub.cluster.logs_dir}" if late or not loops else None

    until(missing, what=f"a good pass of {name}", check=hub.check)


def test_users_are_signed_in_by_the_hub(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(ADA)
    pages.page.goto(f"{hub.url}/services/idle-culler/")
    expect(pages.page.locator(".gw-who")).to_have_text(ADA.name)
    expect(pages.page.locator("h1")).to_be_visible()
