"""Records what the workspace agent reads and reports on a machine with a real NVIDIA GPU.

``python -m tests.gpu.record FOLDER`` as root writes one JSON file for a card that nobody else uses and one
for a card that is shared with a process of another process-id namespace. The files are fixtures of
`tests/unit/workspace_agent/test_recorded.py`; nothing of CI runs this. It needs the packages of the extra
`agent`, `ipykernel` and `jupyter-server-terminals`, and no network.

Each workspace is a Jupyter server in a process-id namespace of its own with user 1000, as in a pod.

Shell: starts servers and loads, talks to the GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from hub_ext.protocol import URL_ENV, Report
from services.workspace_agent import cuda
from services.workspace_agent.nvml import Nvml
from tests.fakes.idle_culler import TOKEN, FakeCuller, serving
from tests.hub.notebook import Notebook, running_notebook

ROOT = Path(__file__).resolve().parents[2]
SETTLE_SECONDS = 6.0
"""A load runs so long before it is looked at, so that making its context is over."""
WINDOW_SECONDS = 8.0
REPORT_SECONDS = 4
HOLD_BYTES = 8 * 2**30
LOAD = f"{sys.executable} -m {cuda.__name__} --compute"
IN_KERNEL = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom {cuda.__name__} import Cuda\ncuda = Cuda()\n"
)
COMPUTE = IN_KERNEL + "spin = cuda.load_spin()\nwhile True:\n    cuda.spin(spin)\n"
HOLD = IN_KERNEL + f"cuda.hold({HOLD_BYTES})\n"

Scenario = Callable[[Notebook], AbstractAsyncContextManager[str]]


@asynccontextmanager
async def _nothing(_: Notebook) -> AsyncIterator[str]:
    yield ""


SCENARIOS: dict[str, Scenario] = {
    "nothing": _nothing,
    "kernel-computes": lambda notebook: notebook.kernel(COMPUTE),
    "kernel-holds-memory": lambda notebook: notebook.kernel(HOLD),
    "terminal-trains": lambda notebook: notebook.terminal(f"cd {ROOT}; sleep 600 | {LOAD}"),
    "background-trains": lambda notebook: notebook.terminal(f"cd {ROOT}; sleep 600 | {LOAD} &"),
    "detached-trains": lambda notebook: notebook.terminal(
        f"cd {ROOT}; setsid nohup sh -c 'sleep 40 | {LOAD}' >/dev/null 2>&1 &", "exit"
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Record both cards; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.record", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        found = asyncio.run(record())
        (options.folder / options.inside).write_text(json.dumps(found, indent=1))
        return 0
    for name, foreign in (("alone.json", False), ("shared.json", True)):
        with tempfile.TemporaryDirectory() as work, load_from_outside(wanted=foreign):
            shutil.chown(work, 1000, 100)
            enter = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
            become = ("setpriv", "--reuid=1000", "--regid=100", "--clear-groups")
            command = [*enter, *become, sys.executable, "-m", "tests.gpu.record", work, f"--inside={name}"]
            subprocess.run(command, cwd=ROOT, check=True)
            shutil.copy(Path(work) / name, options.folder / name)
    return 0


@contextmanager
def load_from_outside(*, wanted: bool) -> Iterator[None]:
    """A process that computes on the card and is not in the workspace's namespace."""
    if not wanted:
        yield
        return
    command = [sys.executable, "-m", cuda.__name__, "--compute"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        assert b"pid" in child.stdout.readline()
        yield
        child.stdin.close()


async def record() -> dict[str, Any]:
    """What was read and reported in each scenario, with the driver's version."""
    nvml, culler = Nvml(), FakeCuller()
    culler.report_seconds = REPORT_SECONDS
    found: dict[str, Any] = {"driver": nvml.driver(), "scenarios": {}}
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(culler) as url,
        running_notebook(
            Path(folder) / "workspace", {URL_ENV: url, "JUPYTERHUB_API_TOKEN": TOKEN}
        ) as notebook,
    ):
        for name, scenario in SCENARIOS.items():
            async with scenario(notebook):
                found["scenarios"][name] = await _watch(notebook, culler, nvml)
            await asyncio.sleep(2)  # what ended is no longer listed
    return found


async def _watch(notebook: Notebook, culler: FakeCuller, nvml: Nvml) -> dict[str, Any]:
    """Let a load settle, then read the GPU for a window and take the last report of that."""
    await asyncio.sleep(SETTLE_SECONDS)
    nvml.read()
    server = psutil.Process(notebook.process.pid)
    before, begun = server.cpu_times(), time.monotonic()
    await asyncio.sleep(WINDOW_SECONDS)
    seconds, after = time.monotonic() - begun, server.cpu_times()
    devices = [
        asdict(device) | {"local": sorted(device.local), "former": sorted(device.former)}
        for device in nvml.read()
    ]
    report: Report = culler.of(Report)[-1]
    used = after.user + after.system - before.user - before.system
    return {
        "devices": devices,
        "report": report.model_dump(mode="json"),
        "server_cpu": used / seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
