"""The wheel for notebook images, as it is described; the browser tests install and use it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from services.workspace_agent import LAB_EXTENSION, _jupyter_labextension_paths, wheel

BUNDLE = tomllib.loads((wheel.ROOT / "pyproject.toml").read_text())["project"]


def test_it_needs_what_the_bundle_needs_but_for_the_hub() -> None:
    names = {wheel.requirement_name(entry) for entry in wheel.describe(BUNDLE)["project"]["dependencies"]}
    bundle = {wheel.requirement_name(entry) for entry in BUNDLE["dependencies"]}
    agent = {wheel.requirement_name(entry) for entry in BUNDLE["optional-dependencies"]["agent"]}
    assert bundle >= wheel.HUB_ONLY
    services = {wheel.requirement_name(entry) for entry in BUNDLE["optional-dependencies"]["services"]}
    assert services >= wheel.COMMAND_NEEDS
    assert names == (bundle - wheel.HUB_ONLY) | agent | wheel.COMMAND_NEEDS


def test_the_image_s_lock_file_has_all_of_it() -> None:
    locked = {
        line.partition("==")[0].replace("ruamel-yaml", "ruamel.yaml")
        for line in (wheel.ROOT / "images" / "notebook" / "server.lock").read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    }
    needed = wheel.describe(BUNDLE)["project"]["dependencies"]
    assert {wheel.requirement_name(entry) for entry in needed} <= locked


def test_its_description_is_toml() -> None:
    described = wheel.describe(BUNDLE)
    read = tomllib.loads(wheel.toml(described))
    assert read["project"]["name"] == wheel.NAME
    assert read["project"]["version"] == BUNDLE["version"]
    assert read["project"]["scripts"] == BUNDLE["scripts"]
    shared = read["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared["labextension"] == f"share/jupyter/labextensions/{LAB_EXTENSION}"


def test_names_of_the_extension_agree() -> None:
    package = json.loads((wheel.LAB / "package.json").read_text())
    assert package["name"] == LAB_EXTENSION
    assert package["version"] == BUNDLE["version"]
    (path,) = _jupyter_labextension_paths()
    assert path["src"] == f"{wheel.LAB.name}/{package['jupyterlab']['outputDir']}"


def test_the_server_is_told_to_load_the_agent() -> None:
    settings = json.loads((Path(wheel.__file__).parent / wheel.SETTINGS).read_text())
    assert settings["ServerApp"]["jpserver_extensions"] == {"services.workspace_agent": True}
