"""Run the test tiers, and fail if any of them, or any test in them, did not run.

``python -m tests.run`` runs all; ``python -m tests.run unit hub`` runs those. Each tier is one pytest
process for each end of the version matrix it covers; what the tiers need is built first, with progress shown.
Tiers with real nodes mostly wait, so they run beside the others, and what both say is shown run by run.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests import matrix, needs
from tests.devcluster.build import BuildError
from tests.results import Result, judge, read_report, slowest_tests, summarize

ROOT = Path(__file__).resolve().parent.parent

INTERRUPTED = 130
"""Exit status after a signal, as shells have it."""

CONTROL_TIERS = frozenset({"hub", "control"})
NODE_TIERS = frozenset({"nodes", "browser"})
WITHOUT_HUB = ("catalog", "devcluster", "doctor", "gpu", "render")
"""Unit tests of what imports neither JupyterHub nor KubeSpawner: one end of the matrix says all of them."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One pytest process."""

    tier: str
    end: matrix.End = matrix.NEWEST
    kubernetes: str | None = None
    """Minor version of the control plane; the newest if not given."""
    without: tuple[str, ...] = ()
    """Folders of the tier that are left out."""

    @property
    def title(self) -> str:
        parts = [self.tier]
        if self.tier in CONTROL_TIERS | NODE_TIERS or self.without:
            parts.append(self.end.title)
        if self.kubernetes:
            parts.append(f"Kubernetes {self.kubernetes}")
        return ", ".join(parts)


RUNS = (
    Run(tier="unit"),
    Run(tier="unit", end=matrix.OLDEST, without=WITHOUT_HUB),
    Run(tier="hub"),
    Run(tier="hub", end=matrix.OLDEST),
    Run(tier="control"),
    Run(tier="control", end=matrix.OLDEST, kubernetes="1.34"),
    Run(tier="nodes"),
    Run(tier="browser"),
)
TIERS = tuple(dict.fromkeys(run.tier for run in RUNS))


def why_not(tier: str) -> str | None:
    """Say what keeps a tier from running on this machine and how to enable it, or None."""
    if tier not in NODE_TIERS:
        return None
    if not sys.platform.startswith("linux"):
        return "real nodes need Linux; run this tier in a Linux virtual machine"
    if os.geteuid() != 0:
        return "real nodes need root for network namespaces and mounts; run this tier as root"
    return None


class Commands:
    """Commands that end when this process is told to end, in whatever thread each of them runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], output: IO[bytes] | None = None
    ) -> int:
        """Run one and return its exit status; it says what it says into `output`, if that is given.

        Raises `KeyboardInterrupt` once `end` was called.
        """
        with self._lock:
            if self._ended:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=output and subprocess.STDOUT
            )
            self._running.add(process)
        try:
            return process.wait()
        finally:
            with self._lock:
                self._running.discard(process)

    def end(self) -> None:
        """End those that run, and wait until they have: the clusters of their tests end with them."""
        with self._lock:
            self._ended = True
            running = tuple(self._running)
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def execute(run: Run, extra: Sequence[str], commands: Commands, output: IO[bytes] | None = None) -> Result:
    """Run one pytest process and read its report."""
    begun = time.monotonic()
    if reason := why_not(run.tier):
        return Result(title=run.title, seconds=0, problem=reason)
    python = matrix.python(run.end)
    environment = os.environ | ({"DEVCLUSTER_KUBERNETES": run.kubernetes} if run.kubernetes else {})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        left_out = [f"--ignore=tests/{run.tier}/{folder}" for folder in run.without]
        command = [
            *(str(python), "-m", "pytest", f"tests/{run.tier}", *left_out),
            *(f"--junitxml={report}", *extra),
        ]
        said = f"\n=== {run.title}\n$ {shlex.join(command)}\n"
        if output is None:
            print(said, end="", flush=True)
        else:
            output.write(said.encode())
            output.flush()
        returncode = commands.run(command, environment, output)
        tests, failed, skipped = read_report(report) if report.exists() else (0, 0, 0)
        slowest = slowest_tests(report) if report.exists() else ()
    return Result(
        title=run.title,
        seconds=time.monotonic() - begun,
        tests=tests,
        failed=failed,
        skipped=skipped,
        slowest=slowest,
        problem=judge(returncode=returncode, tests=tests, skipped=skipped),
    )


def lanes_of(runs: Sequence[Run]) -> list[list[Run]]:
    """What runs beside what, each in its order."""
    with_nodes = [run for run in runs if run.tier in NODE_TIERS]
    others = [run for run in runs if run.tier not in NODE_TIERS]
    return [lane for lane in (others, with_nodes) if lane]


def execute_all(runs: Sequence[Run], extra: Sequence[str]) -> list[Result]:
    """Carry all runs out; of several lanes, what a run says is shown when it ends."""
    commands, lanes = Commands(), lanes_of(runs)

    def follow(lane: Sequence[Run]) -> list[Result]:
        if len(lanes) == 1:
            return [execute(run, extra, commands) for run in lane]
        return [_shown_at_its_end(run, extra, commands) for run in lane]

    with ThreadPoolExecutor(max_workers=len(lanes)) as pool:
        try:
            futures = [pool.submit(follow, lane) for lane in lanes]
            return [result for future in futures for result in future.result()]
        except BaseException:
            commands.end()
            raise


def _shown_at_its_end(run: Run, extra: Sequence[str], commands: Commands) -> Result:
    with tempfile.TemporaryFile() as output:
        sys.stdout.write(f"{time.strftime('%T')} {run.title} …\n")  # in one piece, beside other threads
        sys.stdout.flush()
        try:
            return execute(run, extra, commands, output)
        finally:
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
            sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.run", description=__doc__)
    parser.add_argument(
        "tiers", nargs="*", metavar="tier", help=f"of {', '.join(TIERS)}; all if none is given"
    )
    parser.add_argument(
        "--only-prepare", action="store_true", help="have built and installed what the tiers need, and end"
    )
    options, extra = parser.parse_known_args(arguments)
    unknown = [tier for tier in options.tiers if tier not in TIERS]
    if unknown:
        parser.error(f"no such tier: {', '.join(unknown)}; there are {', '.join(TIERS)}")
    wanted = options.tiers or TIERS
    # By default it would end this process alone, and pytest would run on.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        runs = [run for run in RUNS if run.tier in wanted]
        possible = [run for run in runs if why_not(run.tier) is None]
        needs.prepare(dict.fromkeys(run.tier for run in possible), {run.end for run in possible})
        if options.only_prepare:
            return 0
        begun = time.monotonic()
        results = execute_all(runs, extra)
    except BuildError as error:
        print(f"The tests' needs could not be made: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    print(summarize(results, seconds=time.monotonic() - begun))
    return 1 if any(result.problem for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
