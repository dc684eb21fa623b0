"""Starting and stopping clusters from other processes.

Shell: starts supervisors and talks to them by signals and files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tests.devcluster import cache, claims, host
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import DevClusterError, NotReadyError, StateError
from tests.devcluster.record import Phase, Status, runs_dir
from tests.devcluster.spec import ClusterSpec, load
from tests.devcluster.supervisor import SPEC_FILE
from tests.devcluster.sweep import leftovers, sweep
from tests.devcluster.waiting import POLL_SECONDS, until

ROOT = Path(__file__).parents[2]
STOP_SECONDS = 120
"""After this, a supervisor that has not stopped its cluster is killed, and its sweeper clears up."""


def prepare(name: str, spec: ClusterSpec) -> Path:
    """Make the state folder of a cluster whose name is claimed; logs of its last run are dropped."""
    host.check_host(spec, cache.cache_root())
    state_dir = runs_dir() / name
    state_dir.mkdir(parents=True, exist_ok=True)
    cache.remove(state_dir / "logs")
    (state_dir / "logs").mkdir()
    (state_dir / "status.json").unlink(missing_ok=True)
    (state_dir / SPEC_FILE).write_text(spec.model_dump_json())
    return state_dir


def start(state_dir: Path, name_lock: int, *, owned: bool) -> subprocess.Popen[bytes]:
    """Start a supervisor; an `owned` one ends when this process does or closes its `stdin`."""
    log = state_dir / "logs" / "supervisor.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.devcluster.supervisor",
                *(["--until-stdin-ends"] if owned else []),
                str(name_lock),
                str(state_dir),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE if owned else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[name_lock],
            start_new_session=True,
        )
    os.close(name_lock)
    return process


def follow(state_dir: Path, process: subprocess.Popen[bytes], stream: TextIO) -> Cluster:
    """Show what a supervisor says until its cluster is ready; raises `DevClusterError` if it fails."""
    with (state_dir / "logs" / "supervisor.log").open(errors="replace") as log:
        while True:
            ended = process.poll() is not None
            print(log.read(), end="", file=stream, flush=True)
            status = Status.load(state_dir)
            if ended:
                why = status.message if status and status.message else "see its log"
                raise DevClusterError(f"cluster {state_dir.name!r} did not start: {why}\n  ({log.name})")
            if status is not None and status.phase is Phase.READY:
                return Cluster.open(state_dir)
            time.sleep(POLL_SECONDS)


@contextmanager
def running(
    source: str | Path | ClusterSpec,
    *,
    name: str | None = None,
    like: str | None = None,
    stream: TextIO | None = None,
) -> Iterator[Cluster]:
    """Start a cluster from a file, the name of a shipped one, or a `ClusterSpec`; stop it afterwards.

    It ends with this process, however that ends. Without a `name` it gets one `like` the given one, or like
    the file's, with a number if that is up already. Progress goes to `stream`, by default standard error.
    """
    default, spec = ("cluster", source) if isinstance(source, ClusterSpec) else load(source)
    if name is None:
        name, lock = claims.claim_free_name(like or default)
    else:
        lock = claims.claim_name(name)
    state_dir = prepare(name, spec)
    process = start(state_dir, lock, owned=True)
    try:
        yield follow(state_dir, process, stream or sys.stderr)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        _until_released(name, process.pid)
        process.wait(STOP_SECONDS)


def stop(name: str) -> bool:
    """Stop a cluster, or clear up what a killed one left; returns whether there was anything to do."""
    state_dir = runs_dir() / name
    status = Status.load(state_dir)
    if not state_dir.exists():
        raise StateError(f"cluster {name!r}", "is not known", f"there are: {', '.join(known()) or 'none'}")
    if claims.is_claimed(name) and status is not None:
        _signal(status.supervisor, signal.SIGTERM)
        _until_released(name, status.supervisor)
        return True
    if leftovers(state_dir):
        lock = claims.claim_name(name)
        try:
            sweep(state_dir)
        finally:
            os.close(lock)
        return True
    return False


def known() -> list[str]:
    """Names of clusters that have a state folder."""
    return [folder.name for folder in claims.state_dirs()]


def _until_released(name: str, supervisor: int) -> None:
    def missing() -> str | None:
        return "it still holds its name" if claims.is_claimed(name) else None

    try:
        until(missing, what=f"cluster {name!r} to stop", timeout=STOP_SECONDS)
    except NotReadyError:
        # Its sweeper clears up.
        _signal(supervisor, signal.SIGKILL)
        until(missing, what=f"cluster {name!r} to be cleared up")


def _signal(pid: int, number: signal.Signals) -> None:
    """Signal a supervisor, if that is still what the process is."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return
    if any(word.startswith(b"tests.devcluster") for word in words):
        os.kill(pid, number)
