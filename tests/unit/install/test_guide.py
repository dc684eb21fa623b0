"""The administrator's guide: what it lets people type works for every set, as it stands there."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator

import pytest

from hub_ext.cli import main
from tests.guide import GUIDE
from tests.nodes.enterprise import guide

FOLDER = GUIDE.parent
SETS = sorted(path.stem for path in (FOLDER / "sets").glob("*.yaml"))
SECTIONS = (guide.RENDER, guide.GPUS, guide.INSTALL)


def lines(name: str) -> Iterator[str]:
    """Each command of ours that needs no cluster, less where its output goes."""
    for section in SECTIONS:
        for block in guide.blocks(section):
            for line in block.replace("\\\n", " ").replace("$S", name).splitlines():
                if line.startswith("gpu-workspaces "):
                    yield line.partition(" | ")[0].partition(" > ")[0]


def typed(line: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run a command, and before it the one whose output it has as words; gives its words."""
    if inner := re.search(r"\$\((.*?)\)", line):
        capsys.readouterr()
        typed(inner[1], capsys)
        line = line.replace(inner[0], capsys.readouterr().out.strip())
    words = shlex.split(line)[1:]
    assert main(words) == 0, words
    return words


@pytest.mark.parametrize("name", SETS)
def test_commands_of_the_guide_do_what_they_should(name, tmp_path, monkeypatch, capsys):
    shutil.copytree(FOLDER, tmp_path / "my-hub")
    monkeypatch.chdir(tmp_path / "my-hub")
    done = [typed(line, capsys) for line in lines(name)]
    targets = {words[words.index("--target") + 1] for words in done if "--target" in words}
    assert targets == {"gpu-operator", "resourcequota", "limitrange", "kueue"}
    assert {words[0] for words in done} == {"validate", "manifests", "preflight", "render"}


def test_every_namespace_with_pods_that_pull_gets_the_login():
    (block,) = (one for one in guide.blocks(guide.INSTALL) if "docker-registry" in one)
    words = block.partition("for namespace in ")[2].partition(";")[0].split()
    manifests = (FOLDER / "rendered" / "enterprise.manifests.yaml").read_text(encoding="utf-8")
    made = {part.split("\n")[0] for part in manifests.split("kind: Namespace\nmetadata:\n  name: ")[1:]}
    assert set(words) == made | {"jupyterhub"}


def test_a_section_that_is_gone_is_told():
    with pytest.raises(LookupError, match="no commands"):
        guide.blocks("0. What was never written")
    with pytest.raises(LookupError, match="begins with"):
        guide.without("a\nb", "c")
    with pytest.raises(LookupError, match="no longer says"):
        guide.with_words("a", {"b": "c"})
    assert guide.with_words(guide.without("a b\nc", "c"), {"b": "d"}) == "a d"
