"""The session in JupyterLab, from the agent in the pod to the idle-culler and back."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, expect

from tests.browser.checks import picture
from tests.browser.conftest import SignIn
from tests.browser.pages import HubPages, LabPages
from tests.demo.hub import NAMESPACE, Hub
from tests.demo.users import ADA, VERA
from tests.devcluster.waiting import until

PROFILE = "Short session"
"""Warned a minute after its start."""


def banner(lab: LabPages) -> Locator:
    """The warning above JupyterLab."""
    return lab.page.locator(".gw-Banner")


def press(lab: LabPages, button: re.Pattern[str]) -> None:
    banner(lab).get_by_role("button", name=button).click()


def expect_warning(lab: LabPages) -> None:
    expect(banner(lab)).to_be_visible()
    expect(banner(lab)).to_contain_text(re.compile(r"This server stops in \d+ min"))


def type_into_notebook(lab: LabPages, text: str) -> str:
    """Change the open notebook without saving it; returns its name."""
    lab.page.locator(".jp-Notebook .cm-content").first.click()
    lab.page.keyboard.insert_text(text)
    tab = lab.page.locator(".jp-mod-current.lm-TabBar-tab[data-type=document-title]").first
    expect(tab).to_have_class(re.compile("jp-mod-dirty"))
    return tab.inner_text().strip()


def claims(hub: Hub) -> dict[str, str]:
    """Volume of each claim of the workspaces."""
    listed = json.loads(
        hub.cluster.kubectl("get", "persistentvolumeclaims", f"--namespace={NAMESPACE}", "--output=json")
    )
    return {item["metadata"]["name"]: item["spec"].get("volumeName", "") for item in listed["items"]}


def wait_until_stopped(hub: Hub, pages: HubPages, user: str) -> None:
    """The pod is gone, and the hub offers to start a workspace again."""
    selector = f"--selector=hub.jupyter.org/username={user}"

    def missing() -> str | None:
        pods = hub.cluster.kubectl("get", "pods", f"--namespace={NAMESPACE}", selector, "--output=name")
        if pods.strip():
            return pods
        pages.page.goto(f"{hub.url}/hub/home")
        offered = pages.page.get_by_role("button", name="Start My Server").is_visible()
        return None if offered else "no button to start a workspace"

    until(missing, what=f"the end of {user}'s workspace", check=hub.check)


def test_a_warning_is_put_off_by_keep(sign_in: SignIn) -> None:
    lab = sign_in(VERA).start(PROFILE)
    lab.reset()
    status = lab.page.locator(".gw-Status-button")
    expect_warning(lab)
    expect(status).to_contain_text("Stops in")
    picture(lab.page, "lab-warning")

    press(lab, re.compile("^Keep"))

    expect(banner(lab)).to_be_hidden()
    status.click()
    details = lab.page.get_by_role("dialog", name="This server")
    expect(details).to_contain_text("Signals")
    expect(details.get_by_role("button", name=re.compile("^Keep"))).to_be_visible()
    picture(lab.page, "lab-details")


def test_save_and_stop_saves_what_is_open_and_keeps_the_volume(sign_in: SignIn, hub: Hub) -> None:
    pages = sign_in(ADA)
    lab = pages.start(PROFILE)
    lab.new_notebook()
    expect_warning(lab)
    before = claims(hub)
    name = type_into_notebook(lab, "answer = 'kept by a stop'")

    press(lab, re.compile("^Save and stop"))

    wait_until_stopped(hub, pages, ADA.name)
    after = claims(hub)
    assert after
    assert {claim: after.get(claim) for claim in before} == before
    again = pages.start("Notebook without GPU")
    again.new_notebook()
    assert "kept by a stop" in again.run(f"print(open({name!r}).read())")
