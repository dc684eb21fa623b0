"""The administrator's guide, as its reader types it: tests run its commands and apply its manifests.

Shell: reads a file, runs commands.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster import build
from tests.devcluster.commands import execute

GUIDE = Path(__file__).resolve().parent.parent / "helm-values" / "README.md"
SHELL = frozenset({"bash", "console"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    section: str
    language: str
    line: int
    text: str

    @property
    def commands(self) -> str:
        """What is typed: of a block with prompts, what stands behind them and where it goes on."""
        if self.language != "console":
            return self.text
        typed, goes_on = [], False
        for line in self.text.splitlines():
            if goes_on or line.startswith("$ "):
                typed.append(line.removeprefix("$ "))
                goes_on = line.endswith("\\")
        return "\n".join(typed) + "\n"


def sections() -> dict[str, str]:
    """Give the text below each heading of the second level."""
    parts = re.split(r"^## (.+)$", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(section: str = "") -> Iterator[Block]:
    """Give the blocks of one section, or of all, in their order; blocks inside lists are given unindented."""
    text, heading = GUIDE.read_text(encoding="utf-8"), ""
    for found in re.finditer(
        r"^## (?P<heading>[^\n]+)$|^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$",
        text,
        re.MULTILINE | re.DOTALL,
    ):
        if found["heading"]:
            heading = found["heading"]
        elif section in {"", heading}:
            inside = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
            line = text.count("\n", 0, found.start()) + 1
            yield Block(section=heading, language=found["language"], line=line, text=inside)


def block_with(words: str) -> Block:
    """Give the one block that has these words in it."""
    (found,) = (block for block in blocks() if words in block.text)
    return found


def type_in(script: str, folder: Path, *, kubeconfig: Path) -> str:
    """Let a shell run commands in a folder, with kubectl and ours at hand; gives what they print.

    Raises `CommandFailedError` at the first that fails. By itself, `kubectl apply` takes no unknown field.
    """
    kubectl = build.ensure(["kubectl"])["kubectl"]
    places = (str(kubectl.parent), str(Path(sys.executable).parent), os.environ["PATH"])
    env = {"PATH": os.pathsep.join(places), "HOME": str(folder), "KUBECONFIG": str(kubeconfig)}
    command = ["bash", "-euo", "pipefail", "-c", f"cd {folder}\n{script}"]
    return execute(command, env=env, shown=["bash", "…", script])
