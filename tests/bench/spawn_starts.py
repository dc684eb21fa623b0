"""Many starts at once on a real hub, with KubeSpawner or with ours.

Both hubs are set up alike: the same machines, no proxy program, one HTTP server in place of all notebook
servers, users who look at the progress of their start as a browser does.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from tests.devcluster.cluster import Cluster
from tests.hub.harness import Hub, notebook_server

CONFIG = Path(__file__).parent / "hub_config.py"
CATALOG = {
    "apiVersion": "gpu-workspaces/v1",
    "kind": "Catalog",
    "images": {"base": {"ref": "registry.example.com/b@sha256:" + "a" * 64, "displayName": "Base"}},
    "profiles": [
        {
            "name": "small",
            "version": 1,
            "displayName": "Small",
            "images": ["base"],
            "resources": {"cpu": "100m", "memory": "128Mi"},
        }
    ],
}


class BenchHub(Hub):
    """The hub of the tests, with the settings of the benchmark."""

    variant = "ours"

    def launch(self) -> subprocess.Popen[bytes]:
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(CONFIG)],
                cwd=self.folder,
                env={**self.environment, "BENCH_VARIANT": self.variant},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self._process

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid


VARIANTS = ("stock", "ours")


def measure(cluster: Cluster, *, starts: int, at_once: int, rounds: int) -> dict[str, dict[str, float]]:
    """Give seconds of processor per start, and the waits' percentiles, of either variant.

    They take turns, and the best of each counts: what else the machine does then differs least.
    """
    found: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    for number in range(rounds):
        for variant in VARIANTS if number % 2 == 0 else reversed(VARIANTS):
            found[variant].append(
                _measure(cluster, variant, starts, at_once, namespace=f"{variant}-{number}")
            )
    return {
        variant: {key: min(one[key] for one in figures) for key in figures[0]}
        for variant, figures in found.items()
    }


def _measure(
    cluster: Cluster, variant: str, starts: int, at_once: int, *, namespace: str
) -> dict[str, float]:
    cluster.kubectl("create", "namespace", namespace)
    with TemporaryDirectory() as folder, notebook_server() as port:
        catalog = Path(folder) / "catalog.yaml"
        catalog.write_text(json.dumps(CATALOG), encoding="utf-8")
        hub = BenchHub(
            Path(folder) / "hub",
            kubeconfig=cluster.kubeconfig,
            namespace=namespace,
            catalog=catalog,
            notebook_port=port,
            failure_limit=0,
        )
        hub.variant = variant
        with _started(hub) as pid:
            users = [f"user-{number}" for number in range(starts)]
            for user in users:
                hub.api("POST", f"users/{user}").raise_for_status()
            asyncio.run(_start_all(hub, ["warm-up"], 1))
            before = processor_seconds(pid)
            waits = asyncio.run(_start_all(hub, users, at_once))
            used = processor_seconds(pid) - before
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    ordered = sorted(waits)
    return {
        "processor": used / starts,
        "p50": statistics.median(ordered),
        "p95": ordered[int(len(ordered) * 0.95)],
    }


@contextmanager
def _started(hub: BenchHub) -> Iterator[int]:
    hub.start()
    try:
        hub.api("POST", "users/warm-up")
        yield hub.pid
    finally:
        hub.stop()


def processor_seconds(pid: int) -> float:
    """Give the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _start_all(hub: Hub, users: list[str], at_once: int) -> list[float]:
    gate = asyncio.Semaphore(at_once)
    headers = {"Authorization": f"token {hub.token}"}
    limits = httpx.Limits(max_connections=at_once * 2)
    async with httpx.AsyncClient(base_url=hub.base, headers=headers, timeout=300, limits=limits) as http:

        async def one(user: str) -> float:
            async with gate:
                begun = time.monotonic()
                answer = await http.post(f"api/users/{user}/server")
                answer.raise_for_status()
                if answer.status_code == 202:
                    await _until_ready(http, user)
                return time.monotonic() - begun

        return list(await asyncio.gather(*(one(user) for user in users)))


async def _until_ready(http: httpx.AsyncClient, user: str) -> None:
    """Follow the progress as the page does."""
    last = ""
    async with http.stream("GET", f"api/users/{user}/server/progress") as stream:
        async for line in stream.aiter_lines():
            if not line.startswith("data:"):
                continue
            last = line
            told = json.loads(line.removeprefix("data:"))
            if told.get("ready"):
                return
            if told.get("failed"):
                break
    raise RuntimeError(f"{user} did not start: {last}")
