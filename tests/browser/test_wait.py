"""The wait: what a person sees while it pulls and while it queues, and what ends it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from hub_ext.cluster.texts import sentence
from hub_ext.cluster.waits import WaitReason
from tests.browser import trouble
from tests.browser.checks import PHONE, barriers, picture
from tests.browser.conftest import SignIn
from tests.browser.pages import LAB
from tests.demo.hub import Hub
from tests.demo.users import ADA, VERA
from tests.devcluster.addons.faults import Kind

PAGE = "#gw-wait"


def test_a_pull_is_told_with_its_seconds_until_the_workspace_is_there(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(ADA)
    with trouble.hanging_registry(hub.cluster):
        wait = pages.begin(trouble.SLOW)
        expect(wait.title).to_have_text("Starting Slow image")
        wait.expect_told(re.compile(r"Fetching the software of the workspace.* [0-9]+ s"), step="Software")
        assert barriers(pages.page, PAGE) == []
        picture(pages.page, "wait-pulling")
        pages.page.set_viewport_size(PHONE)
        picture(pages.page, "wait-pulling-phone")
    pages.page.wait_for_url(LAB)


def test_a_place_in_the_queue_is_told_and_what_is_admitted_starts(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(VERA)
    with trouble.queue(hub.cluster, trouble.QUEUED):
        wait = pages.begin(trouble.QUEUED)
        wait.expect_told(sentence(WaitReason.IN_QUEUE), step="Place in the cluster")
        picture(pages.page, "wait-queued")
        trouble.admit(hub.cluster, trouble.QUEUED)
        pages.page.wait_for_url(LAB)


def test_what_cannot_heal_ends_at_once_and_leads_back_to_the_choice(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(ADA)
    with trouble.hanging_registry(hub.cluster, Kind.MANIFESTS):  # else it may end before its wait is shown
        wait = pages.begin(trouble.PRIVATE)
        wait.expect_told("Fetching the software", step="Software")
    expect(wait.again).to_be_visible()
    assert barriers(pages.page, PAGE) == []
    picture(pages.page, "wait-failed")
    told = wait.expect_failed("Private image")
    assert told.startswith("The registry does not give out the image of this workspace (")
    assert told.endswith("Please tell an administrator.")
    picture(pages.page, "wait-failed-later")
    wait.again.click()
    expect(pages.page.get_by_role("heading", name="Choose a workspace")).to_be_visible()
    pages.start("Notebook without GPU")
