from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.devcluster.build import debian
from tests.devcluster.build.debian import TOOLS, ensure_debian, ensure_tools, find
from tests.devcluster.build.errors import MissingToolsError, UnknownNameError


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on it but what a test puts into the folder; root uses it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(debian, "KNOWN_FOLDERS", (str(tmp_path / "sbin"),))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def program(path: Path, script: str = "") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def apt(folder: Path, script: str) -> None:
    """An apt-get that writes down what it is asked to do, then runs the script."""
    program(folder / "apt-get", f'echo "$*" >> {folder}/asked\n{script}')


def asked(folder: Path) -> list[str]:
    lines = (folder / "asked").read_text().splitlines()
    return [line.split(" ", 1)[1] for line in lines]  # without the first option


INSTALLS_RUNC = "printf '#!/bin/sh\\n' > {bin}/runc; /bin/chmod +x {bin}/runc"


def test_a_tool_is_found_in_path_and_in_folders_that_are_often_not_in_it(bare: Path, tmp_path: Path) -> None:
    runc = program(bare / "runc")
    ipset = program(tmp_path / "sbin" / "ipset")
    assert ensure_tools(["runc", "ipset"]) == {"runc": runc, "ipset": ipset}


def test_a_tool_without_what_it_needs_counts_as_missing(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare / "gcc")
    lacking = debian.Tool(packages=("gcc", "libc6-dev"), also=(str(bare / "stdio.h"),))
    monkeypatch.setattr(debian, "TOOLS", {"gcc": lacking})
    assert find("gcc") is None
    (bare / "stdio.h").touch()
    assert find("gcc") == bare / "gcc"


def test_a_tool_may_be_called_otherwise(bare: Path) -> None:
    assert TOOLS["cni-plugins"].file == "host-local"
    program(bare / "cni-plugins")
    assert find("cni-plugins") is None
    plugin = program(bare / "host-local")
    assert find("cni-plugins") == plugin


def test_an_unknown_tool_is_refused(bare: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'buildah'"):
        ensure_tools(["buildha"])


def test_what_is_missing_is_installed_without_fetching_lists_that_are_there(bare: Path) -> None:
    apt(bare, INSTALLS_RUNC.format(bin=bare))
    assert ensure_tools(["runc"]) == {"runc": bare / "runc"}
    assert asked(bare) == ["install --yes --no-install-recommends runc"]


def test_lists_of_packages_are_fetched_when_it_does_not_work_without(bare: Path) -> None:
    updated, install_runc = bare / "updated", INSTALLS_RUNC.format(bin=bare)
    apt(
        bare,
        f'case "$*" in *update*) : > {updated};; *) test -e {updated} || exit 100; {install_runc};; esac',
    )
    assert ensure_tools(["runc"]) == {"runc": bare / "runc"}
    install = "install --yes --no-install-recommends runc"
    assert asked(bare) == [install, "update", install]


def test_a_failed_install_shows_what_apt_said_and_where_its_log_is(bare: Path, cache_folder: Path) -> None:
    apt(bare, 'echo "E: Could not resolve deb.debian.org"; exit 100')
    with pytest.raises(MissingToolsError) as raised:
        ensure_tools(["runc", "ip"])
    text = str(raised.value)
    assert text.startswith("missing: runc, ip; apt-get failed")
    assert "E: Could not resolve deb.debian.org" in text
    assert str(cache_folder / "logs" / "build" / "apt.log") in text


def test_packages_that_do_not_have_the_tool_are_not_believed(bare: Path) -> None:
    apt(bare, "exit 0")
    with pytest.raises(MissingToolsError, match="missing: runc; the packages are installed but do not have"):
        ensure_tools(["runc"])


def test_others_than_root_are_told_what_is_missing_and_how_to_get_it(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt(bare, "exit 0")
    program(bare / "runc")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MissingToolsError) as raised:
        ensure_tools(["runc", "gcc", "ip"])
    text = str(raised.value)
    assert raised.value.missing == ("gcc", "ip")
    assert "only root can install them" in text
    assert text.endswith("apt-get install --no-install-recommends gcc iproute2 libc6-dev")
    assert not (bare / "asked").exists()


def test_another_system_is_told_which_packages_debian_has_it_in(bare: Path) -> None:
    with pytest.raises(MissingToolsError, match="missing: ip; this machine does not have apt-get"):
        ensure_tools(["ip"])
    with pytest.raises(MissingToolsError, match="does not have Debian's package manager"):
        ensure_debian(["iproute2"])


def test_only_packages_that_are_not_installed_are_installed(bare: Path) -> None:
    program(bare / "dpkg-query", '[ "$3" = runc ] && printf "ii " || exit 1')
    apt(bare, "exit 0")
    ensure_debian(["runc"])
    assert not (bare / "asked").exists()
    ensure_debian(["runc", "ipset"])
    assert asked(bare) == ["install --yes --no-install-recommends ipset"]
