"""The self-test at the start: does NVML show a child of ours, which uses the GPU, under its own number?

Shell: starts a process, talks to the driver.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hub_ext.protocol import Attribution, SelfTest

from .gpus import judge_self_test
from .nvml import Nvml, NvmlError

CHILD = f"{__package__}.cuda"
CHILD_SECONDS = 60
"""Making the first context on a cold machine with many cards takes some of these."""


def run_self_test(nvml: Nvml, started: Callable[[int], None]) -> SelfTest | None:
    """Return the verdict, or None where the child could not use a GPU and nothing was learned.

    `started` is told the child's process id. Raises `NvmlError`.
    """
    if not nvml.read():
        return SelfTest(attribution=Attribution.NO_GPU)
    child = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    started(child.pid)
    try:
        if "pid" not in _first_line(child):
            return None
        return judge_self_test(child.pid, nvml.read(), driver=nvml.driver())
    finally:
        child.kill()
        child.communicate()


def no_library(error: NvmlError) -> SelfTest:
    """The verdict where there is no driver to ask."""
    return SelfTest(attribution=Attribution.NO_LIBRARY, detail=str(error))


def _first_line(child: subprocess.Popen[str]) -> dict[str, object]:
    """What the child says of itself, empty where it says nothing in time."""
    if child.stdout is None:
        return {}
    ready, _, _ = select.select([child.stdout], [], [], CHILD_SECONDS)
    line = child.stdout.readline() if ready else ""
    found: dict[str, object] = json.loads(line) if line.strip() else {}
    return found
