"""Clearing up after a cluster, however its supervisor ended.

Each supervisor has a sweeper beside it, `python -m tests.devcluster.sweep <state folder>`: it waits at a pipe
that breaks when the supervisor is gone, killed or not, and then removes what the kernel does not: processes
that escaped, cgroups, bulky files. Logs stay, for the messages that name them. Sweeping twice does no harm,
and the next start sweeps what even the sweeper could not.

Shell: kills processes, removes cgroups and files.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.devcluster import cache, cgroups, claims
from tests.devcluster.errors import DevClusterError, StateError
from tests.devcluster.processes import MARK
from tests.devcluster.record import Phase, Record, Status
from tests.devcluster.waiting import until

KEPT = frozenset({"logs", "cluster.json", "spec.json", "status.json"})
"""What stays in a state folder: logs, and the record of what was there."""


def sweep(state_dir: Path) -> None:
    """Remove all traces of a dead cluster but its logs; raises `NotReadyError` if something stays."""
    until(
        lambda: _kill_marked(state_dir),
        what=f"the processes of cluster {state_dir.name!r} to end",
    )
    with contextlib.suppress(StateError):  # killed before it wrote its record: nothing was made yet
        cgroups.remove(Record.load(state_dir).cgroup)
    claims.limits().release(state_dir.name, is_up=claims.is_claimed)
    for path in leftovers(state_dir):
        cache.remove(path)
    status = Status.load(state_dir)
    if status is not None and status.phase not in {Phase.FAILED, Phase.STOPPED}:
        message = f"its supervisor was killed while it was {status.phase}; what it left is cleared up"
        Status(phase=Phase.STOPPED, message=message).save(state_dir)


def sweep_dead() -> None:
    """Sweep every cluster of this cache that is not up and has something left."""
    for state_dir in claims.state_dirs():
        if not leftovers(state_dir):
            continue
        descriptor = claims.try_lock(f"name-{state_dir.name}")
        if descriptor is not None:
            try:
                sweep(state_dir)
            finally:
                os.close(descriptor)


def leftovers(state_dir: Path) -> list[Path]:
    """What is in a state folder that a swept one does not have."""
    return sorted(path for path in state_dir.iterdir() if path.name not in KEPT)


def _kill_marked(state_dir: Path) -> str | None:
    """Kill the cluster's processes; returns which there were."""
    pids = marked(state_dir)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return f"processes {pids} are still there" if pids else None


def marked(state_dir: Path) -> list[int]:
    """Ids of the processes that carry a cluster's mark, as far as this user may look."""
    mark = f"{MARK}={state_dir}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


class Sweeper:
    """The process that sweeps when this one is gone; it holds the cluster's locks as well."""

    def __init__(self, state_dir: Path, locks: Sequence[int]) -> None:
        reading, self._held_open = os.pipe()
        with (state_dir / "logs" / "sweeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.devcluster.sweep", str(state_dir)],
                cwd=Path(__file__).parents[2],
                stdin=reading,
                stdout=log,
                stderr=log,
                pass_fds=locks,
                start_new_session=True,
            )
        os.close(reading)


def main(state_dir: Path) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    try:
        sweep(state_dir)
    except (DevClusterError, OSError) as error:
        print(f"could not clear up: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
