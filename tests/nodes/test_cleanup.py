"""However a cluster ends, nothing of it stays on the host, and it never changes the host's own settings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.devcluster import claims, client
from tests.devcluster.client import ROOT, running
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import StateError
from tests.devcluster.record import Phase, Status, runs_dir
from tests.devcluster.spec import ClusterSpec, KwokPool, NodeSpec, Size
from tests.devcluster.waiting import until
from tests.nodes import traces
from tests.nodes.pods import build_pod
from tests.nodes.test_nodes import build_helper

SMALL = ClusterSpec(
    size=Size.NODES,
    nodes=(NodeSpec(name="one"), NodeSpec(name="two")),
    kwok=(KwokPool(name="played", count=2),),
)
OWNER = """
import json, signal, sys
from pathlib import Path
from tests.devcluster.client import running
from tests.devcluster.spec import ClusterSpec
# A shell that runs the tests in the background has them, and so this process, ignore an interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
with running(ClusterSpec.model_validate_json(sys.argv[1]), like="test-cleanup") as cluster:
    print(cluster.state_dir, flush=True)
    signal.pause()
"""


@contextmanager
def owner() -> Iterator[tuple[subprocess.Popen[str], Cluster]]:
    """A process of its own that runs a cluster, with a pod in it."""
    argv = [sys.executable, "-c", OWNER, SMALL.model_dump_json()]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, "the cluster did not start"
            cluster = Cluster.open(Path(line.strip()))
            run_pod(cluster)
            yield process, cluster
        finally:
            process.kill()


def run_pod(cluster: Cluster) -> None:
    cluster.node("one").import_image(build_helper())
    cluster.apply(build_pod("sleeper", "default", node="one"))
    cluster.wait_for("pod/sleeper", "condition=Ready", namespace="default")


def until_gone(known: traces.Known) -> None:
    ended = time.time()

    def missing() -> str | None:
        if claims.is_claimed(known.record.name):
            return "its name is still held"
        found = traces.traces(known, ended=ended)
        return json.dumps(found, indent=1) if found else None

    until(missing, what="the cluster to leave nothing")


def supervisor_of(cluster: Cluster) -> int:
    status = Status.load(cluster.state_dir)
    assert status is not None
    assert status.phase is Phase.READY
    return status.supervisor


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_supervisor_is_killed(number: signal.Signals) -> None:
    before = traces.host_state()
    with owner() as (_, cluster):
        known = traces.know(cluster)
        assert set(traces.traces(known)) >= {"processes", "cgroups", "interfaces", "routes", "files"}
        assert traces.host_state() == before
        os.kill(supervisor_of(cluster), number)
        until_gone(known)
    assert traces.host_state() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_test_run_ends(number: signal.Signals) -> None:
    before = traces.host_state()
    with owner() as (process, cluster):
        known = traces.know(cluster)
        process.send_signal(number)
        until_gone(known)
    assert traces.host_state() == before


def test_the_next_start_clears_what_even_the_sweeper_could_not() -> None:
    with owner() as (process, cluster):
        known = traces.know(cluster)
        for pid in helpers_of(cluster):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        with held(cluster.name):  # else a cluster that other tests start beside this one might clear it
            assert "cgroups" in traces.traces(known)
    with running(ClusterSpec(size=Size.CONTROL), like="test-cleanup-next"):
        until_gone(known)


@contextmanager
def held(name: str) -> Iterator[None]:
    """Hold the name of a cluster as soon as it is dead."""
    locks: list[int] = []

    def missing() -> str | None:
        if (lock := claims.try_lock(f"name-{name}")) is None:
            return "its name is still held"
        locks.append(lock)
        return None

    until(missing, what="the killed cluster to be dead")
    try:
        yield
    finally:
        os.close(locks[0])


def helpers_of(cluster: Cluster) -> list[int]:
    """The sweeper, then the supervisor."""
    supervisor = supervisor_of(cluster)
    sweepers = [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and is_sweeper(folder, cluster.state_dir)
    ]
    assert len(sweepers) == 1
    return [*sweepers, supervisor]


def is_sweeper(process: Path, state_dir: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"tests.devcluster.sweep" in words and str(state_dir).encode() in words


def test_two_clusters_do_not_disturb_each_other(cluster: Cluster) -> None:
    with running(SMALL, like="test-second") as second:
        run_pod(second)
        assert not second.addresses.network.overlaps(cluster.addresses.network)
        nodes = {node["metadata"]["name"] for node in second.get("/api/v1/nodes")["items"]}
        assert nodes == {"one", "two", "played-0", "played-1"}
        with pytest.raises(StateError, match="is up already"):
            claims.claim_name(second.name)
        known = traces.know(second)
    until_gone(known)
    cluster.check()
    assert cluster.get("/readyz") == "ok"
    assert len(cluster.get("/api/v1/nodes")["items"]) == len(cluster.nodes)


def test_a_stopped_cluster_can_be_asked_for_its_logs_and_started_again() -> None:
    for _ in range(2):
        with running(SMALL, name="test-again") as cluster:
            state_dir = cluster.state_dir
        assert (state_dir / "logs" / "one" / "kubelet.log").stat().st_size > 0
        status = Status.load(runs_dir() / "test-again")
        assert status is not None
        assert status.phase is Phase.STOPPED
        assert client.stop("test-again") is False
