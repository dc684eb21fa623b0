"""The commands of the administrator's guide, word by word as it prints them.

Shell: reads the guide.
"""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "helm-values" / "README.md"
RENDER, GPUS = "1. Before you begin", "2. GPUs, metrics, queues"
INSTALL, LOOK = "3. Manifests and hub", "4. What is missing?"


def blocks(heading: str) -> list[str]:
    """Give the shell's blocks of a section, in their order; raises `LookupError` where there is none."""
    text = GUIDE.read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    found = re.findall(r"^```bash\n(.*?)^```", section[1], re.DOTALL | re.MULTILINE) if section else []
    if not found:
        raise LookupError(f"{GUIDE} has no commands under {heading!r}")
    return found


def without(script: str, *beginnings: str) -> str:
    """Leave out the lines that begin so; raises `LookupError` for a beginning that no line has."""
    lines = script.splitlines()
    for beginning in beginnings:
        if not any(line.startswith(beginning) for line in lines):
            raise LookupError(f"no line of the guide begins with {beginning!r}:\n{script}")
    return "\n".join(line for line in lines if not line.startswith(beginnings))


def with_words(script: str, words: dict[str, str]) -> str:
    """Put this installation's words in place of the guide's; raises `LookupError` for one that is missing."""
    for theirs, ours in words.items():
        if theirs not in script:
            raise LookupError(f"the guide no longer says {theirs!r}:\n{script}")
        script = script.replace(theirs, ours)
    return script
