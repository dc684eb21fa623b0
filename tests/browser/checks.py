"""Whether everybody can use a page, whatever it says; and pictures of it for people to look at.

Shell: drives a browser, writes files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from playwright.sync_api import Page, ViewportSize

from tests.demo.proxy import ensure_proxy

PICTURES: Final = Path(__file__).parents[2] / "artifacts" / "browser" / "pages"
DESKTOP: Final[ViewportSize] = {"width": 1280, "height": 1000}
PHONE: Final[ViewportSize] = {"width": 360, "height": 760}
_FIND: Final = """async selector => {
    const found = await axe.run(document.querySelector(selector));
    return found.violations.flatMap(one => one.nodes.map(node => `${one.id}: ${one.help}: ${node.html}`));
}"""


def picture(page: Page, name: str) -> None:
    """Keep a picture of the whole page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def barriers(page: Page, selector: str) -> list[str]:
    """List what keeps people with a screen reader or weak eyes from using a part of a page (axe-core)."""
    script = ensure_proxy().parents[1] / "axe-core" / "axe.min.js"
    page.evaluate(script.read_text(encoding="utf-8"))  # a page may permit no scripts but its own
    found: list[str] = page.evaluate(_FIND, selector)
    return found


def is_too_wide(page: Page) -> bool:
    """Whether the page can be scrolled sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))
