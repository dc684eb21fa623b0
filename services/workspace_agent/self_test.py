"""The self-test at the start: does NVML show a child of ours, which uses the GPU, under its own number?

Shell: starts a process, talks to the driver.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hub_ext.protocol import Attribution, SelfTest

from .gpus import judge_self_test
from .nvml import Nvml, NvmlError

CHILD = f"{__package__}.cuda"
CHILD_SECONDS = 60
"""Making the first context on a cold machine with many cards takes some of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the self-test says."""

    result: SelfTest
    certain: bool = True
    """False where the child could not use a GPU, so that another time may say something else."""


def run_self_test(nvml: Nvml, started: Callable[[int], None]) -> Outcome:
    """Make the test. `started` is told the child's process id. Raises `NvmlError`."""
    if not nvml.read():
        return Outcome(result=SelfTest(attribution=Attribution.NO_GPU))
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
        said = _first_line(child)
        if "pid" not in said:
            detail = f"the self-test could not use a GPU: {said.get('error', 'it said nothing')}"
            return Outcome(result=SelfTest(attribution=Attribution.UNTRUSTED, detail=detail), certain=False)
        return Outcome(result=judge_self_test(child.pid, nvml.read(), driver=nvml.driver()))
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
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
