"""What is fetched before users come: what they read on the spawn page, and what operators see."""

from __future__ import annotations

import re
from typing import Literal

from playwright.sync_api import Locator, Page, expect

from tests.browser.checks import DESKTOP, PHONE, barriers, is_too_wide, picture
from tests.browser.conftest import SignIn
from tests.browser.trouble import SLOW
from tests.demo.hub import Hub
from tests.demo.users import ADA
from tests.devcluster.waiting import until

PAGE = "/services/prepuller/"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WHERE = (("Nodes without GPU", "cpu-1"), ("H200, whole cards", "h200-1"), ("L40S, shared", "l40s-1"))
PREPULLED = ("Notebook without GPU", "One full card", "GPU slice", "Shared GPU for small experiments")


def test_workspaces_are_warm_before_anybody_started_one(hub: Hub, sign_in: SignIn) -> None:
    """All but the one whose image the demo does not fetch ahead: of that nothing is said."""
    pages = sign_in(ADA)

    def missing() -> str | None:
        pages.open_spawn_page()
        told = {title: pages.card(title).inner_text() for title in PREPULLED}
        return next((text for text in told.values() if "warm start" not in text), None)

    until(missing, what="warm starts", check=hub.check)
    pages.open_link(SLOW)
    assert "warm start" not in pages.card("Slow image").inner_text()


def test_operators_see_every_image_on_every_node(hub: Hub, sign_in: SignIn) -> None:
    page = sign_in(ADA).page
    page.goto(f"{hub.url}{PAGE}")
    expect(page.get_by_role("heading", name="Images on nodes")).to_be_visible()

    def missing() -> str | None:
        page.reload()
        return next((where for where in WHERE if not cell(page, *where).count()), (None,))[0]

    until(missing, what="the image on a node of each kind", check=hub.check)
    expect(page.locator(".headline")).to_contain_text("images on nodes are warm")
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            page.set_viewport_size(size)
            assert not is_too_wide(page), name
            assert barriers(page, "main") == [], f"{theme}, {name}"
            picture(page, f"prepuller-{name}-{theme}")


def cell(page: Page, pool: str, node: str) -> Locator:
    """What is told of a node of a pool that has an image."""
    section = page.locator("section").filter(has=page.get_by_role("heading", name=pool, exact=True))
    return section.get_by_role("img", name=re.compile(f"^{node}: pulled"))
