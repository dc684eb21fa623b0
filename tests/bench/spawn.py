"""The hub under load, against KubeSpawner as it is: `python -m tests.bench.spawn [--only stall|page|starts]`.

Three measurements, each of both variants in one run on one cluster of played machines:

* ``stall``: the longest time that the event loop stands still with 3,000 running pods, 8,000 recent events
  and 64 users who wait;
* ``page``: the processor time of a spawn page with 100 profiles on 1,000 nodes;
* ``starts``: the hub's processor time per start, and the time that users wait, at 64 starts at once.

Printed are a table for people and, with ``--json FILE``, the figures. Only ratios mean something: times
depend on the machine. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import spawn_starts
from tests.bench.spawn_load import client, fill
from tests.devcluster.client import ROOT, running
from tests.devcluster.cluster import Cluster
from tests.devcluster.spec import parse

NAMESPACE = "bench-stall"
PODS_PER_NODE = 60


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One thing that was measured of both variants."""

    what: str
    stock: float
    ours: float
    unit: str

    @property
    def ratio(self) -> float:
        return self.ours / self.stock if self.stock else float("inf")

    def row(self) -> str:
        """A line of a Markdown table."""
        return (
            f"| {self.what} | {self.stock:.3g} {self.unit} | {self.ours:.3g} {self.unit} | {self.ratio:.2f} |"
        )


def measure_stall(cluster: Cluster, args: argparse.Namespace) -> list[Figure]:
    """Fill a namespace, then let users wait in either variant."""
    cluster.kubectl("create", "namespace", NAMESPACE)

    async def prepare() -> None:
        async with client(cluster.kubeconfig) as core:
            await fill(core, NAMESPACE, pods=args.pods, events=args.events, users=args.users)

    asyncio.run(prepare())
    found = {name: _stall(cluster, name, args) for name in ("stock", "ours")}
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")

    def of(what: str, key: str, unit: str = "s") -> Figure:
        return Figure(what=what, stock=found["stock"][key], ours=found["ours"][key], unit=unit)

    return [
        of("longest stall of the event loop", "longest"),
        of("99th percentile of its turns", "p99"),
        of("longest stall while the hub starts", "longestWhileLoading"),
        of("share of one processor", "processorShare", ""),
    ]


def _stall(cluster: Cluster, variant: str, args: argparse.Namespace) -> dict[str, float]:
    options = [f"--namespace={NAMESPACE}", f"--users={args.users}", f"--seconds={args.seconds}"]
    return _apart(cluster, "tests.bench.spawn_stall", variant, *options)


def _apart(cluster: Cluster, module: str, *options: str) -> dict[str, float]:
    """Run a measurement in a process of its own and read what it prints last."""
    done = subprocess.run(
        [sys.executable, "-m", module, *options],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=600,
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measure_page(cluster: Cluster, args: argparse.Namespace) -> list[Figure]:
    """Make pages of either variant."""
    found = _apart(cluster, "tests.bench.spawn_page", str(args.profiles), str(args.nodes))
    return [
        Figure(what="spawn page, one in a second", stock=found["stock"], ours=found["alone"], unit="s"),
        Figure(what="spawn page, many in a second", stock=found["stock"], ours=found["shared"], unit="s"),
    ]


def measure_starts(cluster: Cluster, args: argparse.Namespace) -> list[Figure]:
    """Start many workspaces at once on a hub of either variant."""
    found = spawn_starts.measure(cluster, starts=args.starts, at_once=args.users, rounds=args.rounds)
    return [
        Figure(what=what, stock=found["stock"][key], ours=found["ours"][key], unit="s")
        for what, key in (
            ("processor time of the hub per start", "processor"),
            ("wait for a workspace, P50", "p50"),
            ("wait for a workspace, P95", "p95"),
        )
    ]


PARTS: dict[str, Callable[[Cluster, argparse.Namespace], list[Figure]]] = {
    "stall": measure_stall,
    "page": measure_page,
    "starts": measure_starts,
}


def table(figures: Sequence[Figure]) -> str:
    """Write the figures for the README."""
    head = ["| measured | KubeSpawner | this project | ratio |", "|---|---|---|---|"]
    return "\n".join([*head, *(figure.row() for figure in figures)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this only; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    for name, number in (("pods", 3000), ("events", 8000), ("users", 64), ("profiles", 100), ("nodes", 1000)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--starts", type=int, default=192, help="workspaces started in each variant")
    parser.add_argument("--rounds", type=int, default=3, help="how often each variant starts them")
    parser.add_argument("--seconds", type=float, default=35, help="how long users wait in `stall`")
    args = parser.parse_args()
    machines = {"cpu": "64", "memory": "512Gi", "pods": str(2 * PODS_PER_NODE)}
    count = max(4, (args.pods + args.starts) // PODS_PER_NODE + 1)
    spec = parse(
        {"size": "control", "kwok": [{"name": "user", "count": count, "capacity": machines}]},
        source="benchmark",
    )
    figures: list[Figure] = []
    with running(spec, like="bench") as cluster:
        for name in args.only or PARTS:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            figures += PARTS[name](cluster, args)
    print(table(figures))
    if args.json:
        data: list[dict[str, Any]] = [{**vars(figure), "ratio": figure.ratio} for figure in figures]
        args.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
