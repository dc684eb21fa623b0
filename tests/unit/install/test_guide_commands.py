"""The guide's commands: a shell reads them, ours know their options, and what they name is there."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from hub_ext.cli.app import build_parser
from services.preflight.checks import CHECKS
from tests.guide import GUIDE, SHELL, Block, block_with, blocks, sections

ROOT = GUIDE.parents[1]
SETS = sorted(path.stem for path in (GUIDE.parent / "sets").glob("*.yaml"))
TYPED = [block for block in blocks() if block.language in SHELL]
ABOUT_HOMES = ("Backup and restore", "Upgrade", "Roll back")
FROM_OUTSIDE = {
    *("CLIENT_SECRET", "DB_PASSWORD", "DB_URL"),
    *("REGISTRY_USER", "REGISTRY_PASSWORD", "STORE_KEY", "STORE_SECRET"),
}
"""Variables with secrets that only the reader has."""

typed = pytest.mark.parametrize("block", TYPED, ids=lambda block: f"line {block.line}")


def calls(text: str) -> Iterator[list[str]]:
    """Give the arguments of each call of the command; what a call inside a call prints are values files."""
    text = re.sub(r"\\\n\s*", " ", text)
    inner = re.compile(r"\$\(gpu-workspaces ([^()]*)\)")
    yield from (shlex.split(call) for call in inner.findall(text))
    for line in inner.sub("--values values.yaml", text).splitlines():
        for call in re.findall(r"(?:^|[\s;|])gpu-workspaces (.*?)(?:[|>;#]|$)", line):
            yield shlex.split(call)


def test_there_are_commands_in_every_part() -> None:
    assert len(TYPED) >= 15
    assert {*ABOUT_HOMES, "3. Manifests and hub"} <= {block.section for block in TYPED}
    assert sum(len(list(calls(block.commands))) for block in TYPED) >= 10


@typed
def test_a_shell_can_read_the_commands(block: Block) -> None:
    done = subprocess.run(["bash", "-n"], input=block.commands, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@typed
def test_the_command_knows_the_options(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    for call in calls(block.commands):
        try:
            build_parser(call).parse_args(call)
        except SystemExit:
            pytest.fail(f"gpu-workspaces {shlex.join(call)}: {capsys.readouterr().err}")


def test_verbs_are_there_where_they_are_only_mentioned() -> None:
    known = build_parser([]).format_help()
    for verb in set(re.findall(r"`gpu-workspaces (\w+)", GUIDE.read_text(encoding="utf-8"))):
        assert re.search(rf"^ +{verb}\b", known, re.MULTILINE), verb


@pytest.mark.parametrize("name", SETS)
def test_files_are_there_or_made_on_the_way(name: str) -> None:
    made: set[str] = set()
    for block in TYPED:
        text = block.commands.replace('"', "").replace("$S", name)
        made |= set(re.findall(r">\s*(rendered/\S+)", text))
        for file in re.findall(r"\b(?:sets|layers|catalogs|other|rendered)/[\w./-]+", text):
            assert file in made or (GUIDE.parent / file).is_file(), f"line {block.line}: {file}"


def test_variables_are_set_before_they_are_read() -> None:
    known = set(FROM_OUTSIDE)
    for block in TYPED:
        text = block.commands
        known |= set(re.findall(r"(?:^|\s)(?:export |for )?(\w+)(?:=| in )", text))
        known |= {name for names in re.findall(r"read -r ([\w ]+);", text) for name in names.split()}
        read = set(re.findall(r"\$\{?([A-Za-z_]\w*)", text))
        assert read <= known, f"line {block.line}: nothing sets {sorted(read - known)}"


def test_labels_and_annotations_are_those_of_the_code() -> None:
    files = [file for part in ("hub_ext", "services") for file in (ROOT / part).rglob("*.py")]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    guide = GUIDE.read_text(encoding="utf-8")
    found = set(re.findall(r"\bhub\.jupyter\.org/(?:user|server)\w+|component=singleuser-storage", guide))
    assert len(found) >= 3
    assert {one for one in found if one not in code} == set()


@pytest.mark.parametrize("section", ABOUT_HOMES)
def test_checks_that_are_named_are_done(section: str) -> None:
    text = re.sub(r"```.*?```", "", sections()[section], flags=re.DOTALL)
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text))
    assert named <= {check.code for check in CHECKS}


def test_programs_inside_the_commands_are_python() -> None:
    programs = [one for block in TYPED for one in re.findall(r"python3 -c '(.*?)'", block.text, re.DOTALL)]
    assert programs
    for program in programs:
        compile(program, "guide", "exec")


def test_the_restored_claim_is_of_a_snapshot_that_was_taken() -> None:
    assert "name: $claim-before," in block_with("kind: VolumeSnapshot\n").text
    restored = block_with("dataSourceRef").text
    assert re.search(r"kind: VolumeSnapshot, name: claim-[\w-]+-before\}", restored)
