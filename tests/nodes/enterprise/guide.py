"""What of the administrator's guide is typed here, and with which words of this installation's own.

Shell: reads the guide.
"""

from __future__ import annotations

from tests import guide

RENDER, GPUS = "1. Before you begin", "2. GPUs, metrics, queues"
INSTALL, LOOK = "3. Manifests and hub", "4. What is missing?"


def blocks(section: str) -> list[str]:
    """Give what a section lets people type, in its order; raises `LookupError` where that is nothing."""
    found = [block.text for block in guide.blocks(section) if block.language == "bash"]
    if not found:
        raise LookupError(f"{guide.GUIDE} has no commands under {section!r}")
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
