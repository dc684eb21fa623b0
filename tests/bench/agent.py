"""What the workspace agent costs: the share of one processor that it takes from the user's server.

``python -m tests.bench.agent`` starts one Jupyter server with the agent and one without, each beside the same
processes, lets the agent report every second, and divides what it used by what a real pace would ask for.
The goal is less than 0.01. Ratios only: both servers run at the same time on the same machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from hub_ext.protocol import REPORT_SECONDS, URL_ENV, Report
from tests.fakes.idle_culler import TOKEN, FakeCuller, serving
from tests.hub.notebook import Notebook, running_notebook


@contextmanager
def sleeping(count: int) -> Iterator[None]:
    """So many processes for the agent to look at."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen(["sleep", "3600"]))
            stack.callback(process.kill)
        yield


def cpu_seconds(notebook: Notebook) -> float:
    times = psutil.Process(notebook.process.pid).cpu_times()
    return times.user + times.system


def measure(processes: int, seconds: float) -> dict[str, float]:
    """Run both servers for a while; returns what was counted."""
    culler = FakeCuller()
    with tempfile.TemporaryDirectory() as folder, serving(culler) as url, sleeping(processes):
        environment = {URL_ENV: url, "JUPYTERHUB_API_TOKEN": TOKEN}
        with (
            running_notebook(Path(folder) / "with", environment) as agent,
            running_notebook(Path(folder) / "without", {}, agent=False) as plain,
        ):
            time.sleep(10)  # both have started, and the self-test is over
            before = cpu_seconds(agent), cpu_seconds(plain), len(culler.of(Report))
            time.sleep(seconds)
            reports = len(culler.of(Report)) - before[2]
            used = cpu_seconds(agent) - before[0] - (cpu_seconds(plain) - before[1])
    per_report = used / reports
    return {
        "processes": len(psutil.pids()),
        "reports": reports,
        "cpu_seconds_per_report": per_report,
        "share_of_one_processor": per_report / REPORT_SECONDS,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.agent", description=__doc__)
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    print(json.dumps(measure(options.processes, options.seconds), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
