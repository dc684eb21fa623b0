"""The page where workspaces are chosen: by everybody, on every screen, and with nothing but HTML."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.browser.checks import DESKTOP, PHONE, barriers, is_too_wide, picture
from tests.browser.conftest import SignIn
from tests.browser.pages import LAB, PATIENCE_MILLISECONDS, HubPages
from tests.demo.hub import Hub
from tests.demo.users import ADA, VERA
from tests.devcluster.waiting import until

FORM = "#spawn_form"
THEME = "theme => document.documentElement.setAttribute('data-bs-theme', theme)"


def test_everybody_can_use_it_on_every_screen(sign_in: SignIn) -> None:
    pages = sign_in(VERA)
    pages.open_spawn_page()
    expect(pages.page.get_by_role("heading", name="Choose a workspace")).to_be_visible()
    for theme in ("light", "dark"):
        pages.page.evaluate(THEME, theme)
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            pages.page.set_viewport_size(size)
            assert barriers(pages.page, FORM) == [], f"{theme}, {name}"
            assert not is_too_wide(pages.page), f"{theme}, {name}"
            picture(pages.page, f"spawn-{theme}-{name}")


def test_a_keyboard_is_enough(sign_in: SignIn) -> None:
    pages = sign_in(VERA)
    pages.open_spawn_page()
    start = pages.page.get_by_role("button", name=re.compile("^Start"))
    offered = pages.page.locator("input[name=profile]:enabled")
    assert 0 < offered.count() < pages.page.locator("input[name=profile]").count()
    offered.first.focus()
    pages.page.keyboard.press("Space")  # whatever was chosen last
    expect(offered.first).to_be_checked()
    for number in range(1, offered.count()):  # what is for others is passed over
        pages.page.keyboard.press("ArrowDown")
        expect(offered.nth(number)).to_be_checked()
    pages.page.keyboard.press("ArrowDown")
    expect(offered.first).to_be_checked()
    expect(start).to_have_text("Start Notebook without GPU")
    for _ in range(20):
        pages.page.keyboard.press("Tab")
        if start.evaluate("button => button === document.activeElement"):
            break
    expect(start).to_be_focused()


def test_a_link_fills_in_and_starts_nothing(sign_in: SignIn) -> None:
    pages = sign_in(VERA)
    pages.open_link("shared-gpu")
    expect(pages.profile("Shared GPU for small experiments")).to_be_checked()
    assert "somebody else can use it up" in pages.card("Shared GPU for small experiments").inner_text()
    pages.open_link("no-such")
    expect(pages.page.get_by_text("This link cannot be followed.")).to_be_visible()
    expect(pages.profile("Shared GPU for small experiments")).not_to_be_checked()


def test_another_answer_is_told_with_its_size_price_and_room(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(ADA)
    card = pages.card("GPU slice")

    def missing() -> str | None:
        pages.open_link("gpu-slice")
        told = card.inner_text()
        return None if "4 free now" in told else told

    until(missing, what="all slices to be free", check=hub.check)
    expect(card).to_contain_text("One 1g.18gb slice of a card")
    card.get_by_label("Size").select_option("large")
    expect(card).to_contain_text("One 3g.71gb slice of a card")
    expect(card).to_contain_text("1 free now")
    expect(card.locator(".gw-price")).to_have_text("1.80 EUR per hour")
    expect(card.get_by_label("Size")).to_have_value("large")


def test_with_html_alone_a_workspace_is_chosen_and_started(
    hub: Hub, browser: Browser, sign_in: SignIn
) -> None:
    sign_in(VERA)  # stops in the end what is started here
    with browser.new_context(java_script_enabled=False, viewport=DESKTOP) as context:
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        pages = HubPages(context.new_page(), hub.url)
        pages.sign_in(VERA)
        pages.open_spawn_page()
        pages.choose("Notebook without GPU")
        picture(pages.page, "spawn-no-script")
        pages.press_start()
        pages.page.wait_for_url(LAB)
