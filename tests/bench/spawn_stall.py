"""How long the event loop of a hub stands still while users wait: one variant, in a process of its own.

`stock` runs KubeSpawner's own reflectors and `progress()`, `ours` the shared watch and `Start.waits()`; both
for the same pods on the same cluster, which `KUBECONFIG` leads to. Printed as JSON. Time is the processor
time of the one thread between two turns of the loop: other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kubernetes_asyncio.client import CoreV1Api
from kubespawner import KubeSpawner

from hub_ext.catalog.compose import compose
from hub_ext.cluster.hub import HubCluster, Start
from hub_ext.cluster.offer import Rules
from hub_ext.cluster.sources import sources
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.watch import ClusterWatch
from hub_ext.quota.demand import weights_of
from hub_ext.quota.usage import Owner
from tests.bench.spawn_load import client
from tests.bench.spawn_page import large_catalog

TURN = 0.005
"""Seconds between two looks at the clock."""


@dataclass
class Stalls:
    """Processor time between the turns of an event loop."""

    longest: float = 0.0
    turns: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        """Take the time of each turn until cancelled."""
        before = time.thread_time()
        while True:
            await asyncio.sleep(TURN)
            now = time.thread_time()
            self.turns.append(now - before)
            before = now


async def drain(told: AsyncIterator[Any]) -> None:
    """Do what the hub does with progress: take each message and write it out."""
    async for message in told:
        json.dumps(message if isinstance(message, dict) else message.as_dict())


async def stock(namespace: str, users: int) -> list[asyncio.Task[None]]:
    """Let users wait with KubeSpawner as it is."""
    spawners = []
    for number in range(users):
        user = SimpleNamespace(name=f"waits-{number}", id=number, url="/", escaped_name=f"waits-{number}")
        spawner = KubeSpawner(_mock=True, user=user, namespace=namespace)
        spawner.pod_name = f"jupyter-waits-{number}"
        spawners.append(spawner)
    await spawners[0]._start_watching_pods()
    await spawners[0]._start_watching_events()
    for spawner in spawners:
        spawner._start_future = asyncio.get_running_loop().create_future()
    return [asyncio.create_task(drain(spawner.progress())) for spawner in spawners]


async def ours(namespace: str, users: int, core: CoreV1Api) -> list[asyncio.Task[None]]:
    """Let users wait with the shared watch."""
    catalog = large_catalog(1)
    rules = Rules(catalog=catalog, weights=weights_of(catalog))
    watch = ClusterWatch(ClusterState(rules.weights), sources(core.api_client, [namespace]))
    cluster = HubCluster(watch, rules)
    workspace = compose(catalog, catalog.profiles[0], {})
    await cluster.ready()
    starts = []
    for number in range(users):
        owner = Owner(user=f"waits-{number}")
        start = cluster.begin(workspace, owner, namespace=namespace, name=f"jupyter-waits-{number}")
        assert isinstance(start, Start)
        # Its pod is there already, which otherwise means that it belongs to an earlier start.
        start._not_mine = ""
        starts.append(start)
    return [asyncio.create_task(drain(start.waits())) for start in starts]


async def measure(args: argparse.Namespace) -> dict[str, float]:
    """Run one variant and give its figures in seconds."""
    async with client(Path(os.environ["KUBECONFIG"])) as core:
        return await _measure(args, core)


async def _measure(args: argparse.Namespace, core: CoreV1Api) -> dict[str, float]:
    stalls = Stalls()
    watcher = asyncio.create_task(stalls.watch())
    begun, cpu = time.monotonic(), time.process_time()
    waits = await (
        stock(args.namespace, args.users)
        if args.variant == "stock"
        else ours(args.namespace, args.users, core)
    )
    loaded, loading = time.monotonic() - begun, max(stalls.turns, default=0.0)
    stalls.turns.clear()
    cpu, begun = time.process_time(), time.monotonic()
    await asyncio.sleep(args.seconds)
    used, passed = time.process_time() - cpu, time.monotonic() - begun
    for task in (*waits, watcher):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    ordered = sorted(stalls.turns)
    return {
        "loadSeconds": loaded,
        "longestWhileLoading": loading,
        "longest": ordered[-1],
        "p99": ordered[int(len(ordered) * 0.99)],
        "processorShare": used / passed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", choices=["stock", "ours"])
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=35)
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    print(json.dumps(asyncio.run(measure(args))), flush=True)
    # Reflectors and clients of the variants live as long as their process.
    os._exit(0)


if __name__ == "__main__":
    main()
