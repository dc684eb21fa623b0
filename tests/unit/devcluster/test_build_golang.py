from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.devcluster.build import golang
from tests.devcluster.build.errors import ToolchainError
from tests.devcluster.build.golang import MODULES, Pinned, pinned, program_key, release, steps, toolchain
from tests.devcluster.build.plan import Pool
from tests.devcluster.build.table import PROGRAMS, Program, in_folder, linker_flags

FOLDERS = sorted(path.name for path in MODULES.iterdir())
by_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
by_folder = pytest.mark.parametrize("folder", FOLDERS)


@by_program
def test_every_program_is_pinned_as_a_tool_of_its_module(program: Program) -> None:
    pins = pinned(program.folder)
    assert re.search(rf"^(tool |\t){re.escape(program.package)}$", pins.go_mod, re.MULTILINE)
    version = pins.version(program.module)
    assert f"{program.module} {version} h1:" in pins.go_sum


@by_folder
def test_every_tool_of_a_module_is_a_program(folder: str) -> None:
    block = re.search(r"^tool (?:\((.*?)\)|(\S+))$", pinned(folder).go_mod, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert sorted((block[1] or block[2]).split()) == sorted(p.package for p in in_folder(folder))


@by_folder
def test_nothing_is_replaced_by_a_folder(folder: str) -> None:
    replaced = re.findall(r"=> (\S+)(.*)$", pinned(folder).go_mod, re.MULTILINE)
    assert all(re.fullmatch(r" v\d\S+", version) for _, version in replaced)


@pytest.mark.parametrize("folder", ["kubernetes", "kubernetes-oldest"])
def test_kubernetes_is_of_one_version(folder: str) -> None:
    pins = pinned(folder)
    staging = set(re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ v0\.(\S+)$", pins.go_mod, re.MULTILINE))
    assert staging == {pins.version("k8s.io/kubernetes").removeprefix("v1.")}


def test_the_marked_programs_are_of_the_version_that_their_name_says() -> None:
    marked = {name: program for name, program in PROGRAMS.items() if "@" in name}
    assert marked
    for name, program in marked.items():
        file, _, version = name.partition("@")
        assert program.file == file
        assert pinned(program.folder).version(program.module).startswith(f"v{version}.")


def test_no_two_programs_share_a_key() -> None:
    keys = [program_key(program, pinned(program.folder)) for program in PROGRAMS.values()]
    assert len(set(keys)) == len(keys)


PROGRAM = Program(
    name="thing", folder="things", package="example.org/Thing/cmd", module="example.org/Thing", seconds=1
)
GO_MOD = """\
module things

go 1.26.6

require example.org/Thing v1.2.3 // indirect

require (
\texample.org/other v0.1.0
)
"""
PINS = Pinned("things", GO_MOD, "example.org/Thing v1.2.3 h1:abc=\n")


@pytest.mark.parametrize(
    ("program", "pins"),
    [
        pytest.param({}, {"go_sum": PINS.go_sum + "example.org/other v0.1.0 h1:def=\n"}, id="go.sum"),
        pytest.param({}, {"go_mod": PINS.go_mod.replace("v0.1.0", "v0.1.1")}, id="a dependency"),
        pytest.param({}, {"go_mod": PINS.go_mod.replace("v1.2.3", "v1.2.4")}, id="the version"),
        pytest.param({"package": "example.org/Thing/other"}, {}, id="the package"),
        pytest.param({"stamps": ("example.org/Thing.version",)}, {}, id="where the version is put"),
        pytest.param({"link": "-extldflags=-static"}, {}, id="linker flags"),
        pytest.param({"cgo": True}, {}, id="cgo"),
    ],
)
def test_whatever_decides_the_content_changes_the_key(
    program: dict[str, object], pins: dict[str, str]
) -> None:
    changed = dataclasses.replace(PROGRAM, **program), dataclasses.replace(PINS, **pins)  # type: ignore[arg-type]
    assert program_key(*changed) != program_key(PROGRAM, PINS)


def test_names_and_costs_do_not_change_the_key() -> None:
    renamed = dataclasses.replace(PROGRAM, name="other", seconds=99)
    assert program_key(renamed, PINS) == program_key(PROGRAM, PINS)


def test_pins_are_read_from_go_mod() -> None:
    assert PINS.go == "1.26.6"
    assert PINS.version("example.org/Thing") == "v1.2.3"
    assert PINS.version("example.org/other") == "v0.1.0"
    assert PINS.source("example.org/Thing") == golang.module_cache() / "example.org" / "!thing@v1.2.3"
    with pytest.raises(ValueError, match=r"tests/devcluster/go/things/go.mod: nothing matches"):
        PINS.version("example.org/thin")


def test_kubernetes_is_told_its_version() -> None:
    flags = linker_flags(PROGRAMS["kube-apiserver"], "v1.36.3").split()
    assert "k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "k8s.io/component-base/version.gitMinor=36" in flags


def test_programs_of_one_module_are_compiled_one_after_another_after_its_download() -> None:
    found = steps()
    for name, program in PROGRAMS.items():
        (need,) = found[name].needs
        assert found[need].pool is Pool.DOWNLOAD
        assert found[name].lane == found[in_folder(program.folder)[0].name].lane
    assert len({step.lane for step in found.values()}) == 2 * len(FOLDERS)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.26.5", "1.26.6"),
        ("1.26", "1.26.1"),
        ("1.9.7", "1.26"),
        ("1.26.8", "1.27rc1"),
        ("1.26.8-X:nodwarf5", "1.26.9"),
    ],
)
def test_go_versions_are_compared_by_numbers(older: str, newer: str) -> None:
    assert release(older) < release(newer)


MakeGo = Callable[[str, str], Path]


@pytest.fixture
def make_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeGo:
    """Make programs called `go` that only tell a version; the machine's own are out of sight."""
    monkeypatch.setattr(golang, "KNOWN_PLACE", tmp_path / "usr-local" / "go")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))

    def make(folder: str, version: str) -> Path:
        go = tmp_path / folder / "go"
        go.parent.mkdir()
        go.write_text(f"#!/bin/sh\necho go{version}\n")
        go.chmod(0o755)
        return go

    return make


def test_the_first_go_in_path_is_taken(make_go: MakeGo) -> None:
    go = make_go("path", "1.26.6")
    make_go("usr-local", "1.27.0")
    assert toolchain(PINS) == go


def test_an_older_go_in_path_gives_way_to_a_newer_one_in_the_usual_place(make_go: MakeGo) -> None:
    make_go("path", "1.24.1")
    newer = make_go("usr-local", "1.26.8")
    assert toolchain(PINS) == newer


def test_an_older_go_is_refused_with_what_to_do(make_go: MakeGo) -> None:
    go = make_go("path", "1.24.1")
    with pytest.raises(ToolchainError) as raised:
        toolchain(PINS)
    text = str(raised.value)
    assert "Go 1.26.6 or newer is needed" in text
    assert "tests/devcluster/go/things/go.mod asks for it" in text
    assert f"found 1.24.1 at {go}" in text
    assert "https://go.dev/dl/" in text


@pytest.mark.usefixtures("make_go")
def test_no_go_at_all_is_said() -> None:
    with pytest.raises(ToolchainError, match="no `go` was found in PATH or /usr/local/go/bin"):
        toolchain(PINS)
