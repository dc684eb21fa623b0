"""The page's HTML: everything escaped, nothing but what is shown, and labels for everything to operate."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.form.entries import Visit
from hub_ext.form.page import build_page
from hub_ext.form.render import render
from tests.fakes.workspaces import ADA, EVE, TEXT, TODAY, workspaces

EVIL = "<img src=x onerror=alert(1)>\"'{{ 7*7 }}</script></style>"


class Elements(HTMLParser):
    """Start tags with their attributes, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag in tags]


def html_of_evil_catalog() -> str:
    """Render a catalog whose every text for people is an attack, with a link that is one."""
    data = yaml.safe_load(TEXT)
    for profile in data["profiles"]:
        profile |= {"displayName": EVIL, "description": EVIL, "category": EVIL, "message": EVIL}
        profile["environment"] = {"SECRET": "hunter2-in-the-environment"}
        profile["annotations"] = {"example.com/secret": "hunter2-in-an-annotation"}
        for choice in profile.get("choices", {}).values():
            choice |= {"displayName": EVIL, "description": EVIL}
            for option in choice["options"].values():
                option |= {"displayName": EVIL, "environment": {"SECRET": "hunter2-in-an-option"}}
    for image in data["images"].values():
        image |= {"displayName": EVIL, "description": EVIL}
    for team in data["teams"].values():
        team["displayName"] = EVIL
    visit = Visit(person=EVE, server_name=EVIL, today=TODAY, last={"profile": EVIL}, link={"profile": EVIL})
    return render(build_page(load_catalog(data), visit))


def test_no_text_of_the_catalog_or_the_user_becomes_markup() -> None:
    html = html_of_evil_catalog()
    assert "&lt;img" in html
    assert not Elements(html).all("img")
    assert len(Elements(html).all("script", "style")) == 2
    assert not any(name.startswith("on") for _, attributes in Elements(html).found for name in attributes)
    assert "{{ 7*7 }}" in html


def test_nothing_that_is_not_shown_is_sent() -> None:
    html = html_of_evil_catalog()
    assert "hunter2" not in html
    for hidden in ("sha256:", "nodeSelector", "CC-1", "registry.example.com/torch"):
        assert hidden not in html


def test_everything_that_can_be_operated_has_a_label() -> None:
    elements = Elements(
        render(build_page(workspaces(), Visit(person=EVE, server_name="", today=TODAY, last={})))
    )
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    labelled = {attributes["for"] for attributes in elements.all("label")}
    operated = [a for a in elements.all("input", "select") if a.get("type") != "hidden"]
    assert operated
    for attributes in operated:
        assert attributes["id"] in labelled
    for _, attributes in elements.found:
        for reference in ("aria-describedby", "aria-labelledby"):
            assert attributes.get(reference, ids[0]) in ids


def test_a_named_server_is_named() -> None:
    visit = Visit(person=ADA, server_name="more", today=TODAY, last={})
    assert "For your server “more”" in render(build_page(workspaces(), visit))
    assert "For your server" not in render(build_page(workspaces(), replace(visit, server_name="")))


def test_the_page_names_no_address() -> None:
    html = render(build_page(workspaces(), Visit(person=ADA, server_name="", today=TODAY, last={})))
    assert not re.search(r"(src|href|action)=|url\(", html)
    assert "/hub" not in html
