"""What the one call for `jupyterhub_config.py` sets, and what it leaves to the admin."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jinja2 import Environment, FileSystemLoader
from tornado.util import import_object
from traitlets.config import Config

from hub_ext import configure
from hub_ext.config import API, TEMPLATES
from hub_ext.form.handlers import WorkspacesHandler
from tests.fakes.workspaces import TEXT

CATALOG = yaml.safe_load(TEXT)


def test_it_offers_the_page_s_facts_to_programs() -> None:
    c = Config()
    configure(c, catalog=CATALOG)
    assert c.JupyterHub.extra_handlers.get_value([]) == [API]
    assert import_object(API[1]) is WorkspacesHandler


def test_our_pages_stand_before_the_hub_s_own() -> None:
    c = Config()
    configure(c, catalog=CATALOG)
    assert c.JupyterHub.template_paths.get_value(["hub's"]) == [TEMPLATES, "hub's"]


def test_an_admin_s_own_pages_stand_before_ours() -> None:
    c = Config()
    c.JupyterHub.template_paths = ["/etc/jupyterhub/templates"]
    configure(c, catalog=CATALOG)
    assert c.JupyterHub.template_paths == ["/etc/jupyterhub/templates", TEMPLATES]


def test_a_catalog_is_written_down_only_for_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    configure(Config(), catalog=CATALOG)
    assert list(tmp_path.iterdir()) == []


def test_without_a_catalog_it_is_in_the_values_of_the_chart() -> None:
    with pytest.raises(SystemExit, match="no-catalog"):
        configure(Config())


@pytest.mark.parametrize("path", sorted(Path(TEMPLATES).rglob("*.*")), ids=lambda path: path.name)
def test_every_page_is_a_template(path: Path) -> None:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    environment.get_template(str(path.relative_to(TEMPLATES)))
