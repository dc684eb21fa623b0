"""The list of what is in an image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.sbom import DPKG, Package, build_sbom, debian_packages, main, python_packages

STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10
Description: GNU C Library: Shared libraries
 Contains the standard libraries.
 .
 Version: of no package

Package: g++
Status: install ok installed
Architecture: amd64
Version: 4:12.2.0-3

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, more in {"Ruamel_Yaml": "License-Expression: MIT\n", "zipp": "License: MIT License\n"}.items():
        folder = tmp_path / f"{name}-1.0+cu130.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0+cu130\n{more}")
    return tmp_path


def test_python_packages_have_the_names_that_scanners_look_for(site: Path) -> None:
    assert sorted(python_packages([str(site)])) == [
        Package("pkg:pypi/ruamel-yaml@1.0%2Bcu130", "ruamel-yaml", "1.0+cu130", "MIT"),
        Package("pkg:pypi/zipp@1.0%2Bcu130", "zipp", "1.0+cu130"),
    ]


def test_debian_packages_are_those_that_are_installed(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(STATUS)
    (tmp_path / "os-release").write_text('NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\n')
    assert list(debian_packages(tmp_path / "status", tmp_path / "os-release")) == [
        Package("pkg:deb/ubuntu/libc6@2.36-9%2Bdeb12u10?arch=amd64", "libc6", "2.36-9+deb12u10"),
        Package("pkg:deb/ubuntu/g%2B%2B@4%3A12.2.0-3?arch=amd64", "g++", "4:12.2.0-3"),
    ]
    assert list(debian_packages(tmp_path / "none", tmp_path / "none")) == []


def test_each_package_is_told_once_and_always_in_the_same_order() -> None:
    one, two = Package("pkg:pypi/a@1", "a", "1", "MIT"), Package("pkg:pypi/b@2", "b", "2")
    told = build_sbom("hub", [two, one, two])
    assert told == build_sbom("hub", [one, two])
    assert [part["bom-ref"] for part in told["components"]] == ["pkg:pypi/a@1", "pkg:pypi/b@2"]
    assert told["components"][0]["licenses"] == [{"expression": "MIT"}]
    assert "licenses" not in told["components"][1]


def test_the_command_tells_of_this_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test"]) == 0
    told = json.loads(capsys.readouterr().out)
    names = {part["name"] for part in told["components"]}
    assert {"jupyterhub", "pytest"} <= names
    assert any(part["purl"].startswith("pkg:deb/") for part in told["components"]) is DPKG.exists()
