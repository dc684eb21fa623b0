"""The prepuller in figures: `python -m tests.bench.prepull [--only plan|link|warm|quiet]`.

* ``plan``: processor time of a look at 1,000 nodes and 20 images: the first one, and one in the middle;
* ``warm``: time until 95 % of all places are warm, against one DaemonSet for each image, on the same played
  machines in the same run: with as many pulls at once as there are nodes and no canary (``eager``), as many
  with one (``canary``), and with the limits that come with the prepuller (``default``). A kubelet fetches one
  image after the other, also for several pods, so the pods of the second DaemonSet take twice as long, and so
  on. The links are not played, as if any number of nodes could draw from the registry without slowing each
  other: how many do is printed beside it;
* ``link``: the same by calculation, where all nodes draw from one registry and share its link: 60 nodes that
  take 60 MB/s each, four images of 10 GB, a link of 1.25 GB/s;
* ``quiet``: requests to the API server while everything is warm, for ``--seconds``.

Printed are tables for people and, with ``--json FILE``, the figures. Times depend on the machine; nothing
here is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from hub_ext.catalog.load import load_catalog
from hub_ext.cluster.kinds import Kind
from services.kube import Kube, api_path
from services.prepuller import prepuller as acting
from services.prepuller.judge import Judge
from services.prepuller.manifest import build_pull_pod
from services.prepuller.plan import Fetch
from services.prepuller.pods import LABEL_WANT, PullPod, Step
from services.prepuller.settings import Settings
from services.prepuller.store import Store
from tests.devcluster.client import running as cluster_running
from tests.devcluster.cluster import Cluster
from tests.devcluster.spec import parse
from tests.prepulling.account import account
from tests.prepulling.recorder import Recorder, recording
from tests.prepulling.service import Running, running
from tests.unit.prepuller import world

POOL = "bench"
LABEL = "prepull.test/pool"
SHARE = 0.95
STEP = 5.0
"""Seconds, where time is calculated."""
LINKED, LINKED_IMAGES, IMAGE_BYTES = 60, 4, 10e9
Figures = dict[str, float]


def build_catalog(images: int) -> dict[str, Any]:
    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {
            f"i{number}": {
                "ref": f"registry.example.org/i{number}@sha256:{number:064x}",
                "displayName": f"Image {number}",
            }
            for number in range(images)
        },
        "pools": {POOL: {"nodeSelector": {LABEL: POOL}}},
        "profiles": [
            {
                "name": f"p{number}",
                "version": 1,
                "displayName": f"Profile {number}",
                "images": [f"i{number}"],
                "resources": {"cpu": 1, "memory": "1Gi", "pool": POOL},
            }
            for number in range(images)
        ],
    }


def measure_plan(args: argparse.Namespace) -> Figures:
    """Judge a large cluster, first when nothing is there, then when half of everything is."""
    now = datetime.now(UTC)
    catalog, settings, store = load_catalog(build_catalog(20)), Settings(), Store()
    for number in range(1000):
        listed = [{"names": [f"registry.example.org/x{n}:1"], "sizeBytes": 10**9 - n} for n in range(50)]
        store.put(Kind.NODES, _node(f"n{number}", listed), now)
    judge = Judge(settings, store)
    begun = time.process_time()
    moment = judge.judge(catalog, now)
    first = time.process_time() - begun
    for number, (want, node) in enumerate(moment.picture.layout.places):
        if number % 2:
            pod = build_pull_pod(moment.picture.desired.wants[want], node, settings=settings)
            store.put(Kind.PODS, _ended(pod, number, node, now), now)
    times = []
    for _ in range(5):
        begun = time.process_time()
        judge.judge(catalog, now)
        times.append(time.process_time() - begun)
    return {"places": len(moment.picture.layout.places), "first": first, "again": statistics.median(times)}


def _node(name: str, images: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {LABEL: POOL, "kubernetes.io/arch": "amd64"}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "images": images},
    }


def _ended(pod: dict[str, Any], number: int, node: str, now: datetime) -> dict[str, Any]:
    ended = {"exitCode": 0, "finishedAt": now.isoformat()}
    pod["metadata"] |= {"uid": str(number), "creationTimestamp": now.isoformat()}
    pod["spec"]["nodeName"] = node
    pod["status"] = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "image", "state": {"terminated": ended}}],
    }
    return pod


def measure_warm(cluster: Cluster, args: argparse.Namespace) -> Figures:
    """Warm the same machines in all ways, one after the other."""
    found = asyncio.run(_warm_daemon_sets(cluster, args))
    equal = {"total": args.nodes, "perPool": args.nodes, "perRegistry": args.nodes}
    ways = {"eager": {**equal, "canary": False}, "canary": equal, "default": {}}
    for name, limits in ways.items():
        ours = asyncio.run(_warm_ours(cluster, args, name, limits))
        found |= ours | {f"{name}Ratio": ours[f"{name}Seconds"] / found["daemonSetSeconds"]}
    return found


async def _warm_ours(
    cluster: Cluster, args: argparse.Namespace, name: str, limits: Mapping[str, Any]
) -> Figures:
    places, namespace, recorder = args.nodes * args.images, f"bench-{name}", Recorder()
    cluster.kubectl("create", "namespace", namespace)
    async with (
        await Kube.connect({"KUBECONFIG": str(cluster.kubeconfig)}) as kube,
        recording(kube, namespace, recorder),
    ):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            config = stack.enter_context(account(cluster, namespace, folder))
            stack.enter_context(mock.patch.object(acting, "build_pull_pod", _played(args.pull)))
            begun = time.monotonic()
            given = {"pods": {"namespace": namespace}, "limits": limits}
            async with running(config, build_catalog(args.images), folder, **given) as found:
                await found.until(lambda: found.states()["pulled"] >= SHARE * places, what="warm fleet")
                return {
                    f"{name}Seconds": time.monotonic() - begun,
                    f"{name}AtOnce": recorder.most["total"],
                    f"{name}Requests": sum(found.requests.values()),
                }


def _played(seconds: float) -> Callable[..., dict[str, Any]]:
    def build(want: Any, node: str, **more: Any) -> dict[str, Any]:
        pod = build_pull_pod(want, node, **more)
        pod["metadata"]["annotations"] |= {
            "devcluster.test/pull-delay": f"{seconds}s",
            "devcluster.test/complete-after": "1s",
        }
        return pod

    return build


async def _warm_daemon_sets(cluster: Cluster, args: argparse.Namespace) -> Figures:
    places, namespace = args.nodes * args.images, "bench-daemon-sets"
    cluster.kubectl("create", "namespace", namespace)
    pods = api_path("v1", "pods", namespace=namespace)
    async with await Kube.connect({"KUBECONFIG": str(cluster.kubeconfig)}) as kube:
        begun, most = time.monotonic(), 0
        for number in range(args.images):
            body = _daemon_set(number, args.pull * (number + 1))
            await kube.create(api_path("apps/v1", "daemonsets", namespace=namespace), body)
        while True:
            phases = [pod["status"].get("phase") for pod in (await kube.list(pods)).items]
            most = max(most, phases.count("Pending"))
            if phases.count("Running") >= SHARE * places:
                found = {"daemonSetSeconds": time.monotonic() - begun, "daemonSetAtOnce": most}
                break
            await asyncio.sleep(0.2)
    cluster.kubectl("delete", "namespace", namespace)
    return found


def _daemon_set(number: int, seconds: float) -> dict[str, Any]:
    labels = {"app": f"puller-{number}", LABEL_WANT: f"i{number}"}
    container = {"name": "image", "image": f"registry.example.org/i{number}@sha256:{number:064x}"}
    return {
        "metadata": {"name": f"puller-{number}"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {"devcluster.test/pull-delay": f"{seconds}s"},
                },
                "spec": {"nodeSelector": {LABEL: POOL}, "containers": [container]},
            },
        },
    }


def measure_link(args: argparse.Namespace) -> Figures:
    """Calculate all ways on one link."""
    daemon_sets = _link_daemon_sets()
    found = {"daemonSetSeconds": daemon_sets}
    ways = {"equal": {"total": LINKED, "perPool": LINKED, "perRegistry": LINKED}, "default": {}}
    for name, limits in ways.items():
        seconds = _link_ours(Settings.model_validate({"limits": limits}))
        found |= {f"{name}Seconds": seconds, f"{name}Ratio": seconds / daemon_sets}
    return found


def _link_daemon_sets() -> float:
    every = LINKED_IMAGES * IMAGE_BYTES
    left, seconds = [every] * LINKED, 0.0
    while sum(every - rest for rest in left) < SHARE * LINKED * every:
        drawn = _drawn(sum(rest > 0 for rest in left))
        left = [max(0.0, rest - drawn) for rest in left]
        seconds += STEP
    return seconds


def _link_ours(given: Settings) -> float:
    catalog = load_catalog(build_catalog(LINKED_IMAGES))
    cluster = world.Cluster(*(_node(f"n{number}", []) for number in range(LINKED)))
    left: dict[str, float] = {}
    begun = cluster.now
    while sum(pod.step is Step.DONE for pod in cluster.pods.values()) < SHARE * LINKED * LINKED_IMAGES:
        for fetch in cluster.plan(catalog, given).fetches:
            pod = _pulling(fetch, cluster.now)
            cluster.pods[pod.uid], left[pod.uid] = pod, IMAGE_BYTES
        cluster.now += timedelta(seconds=STEP)
        flying = [pod for pod in cluster.pods.values() if pod.step is Step.PULLING]
        for pod in flying:
            left[pod.uid] -= _drawn(len(flying))
            if left[pod.uid] <= 0:
                cluster.pods[pod.uid] = replace(pod, step=Step.DONE, since=cluster.now)
    return (cluster.now - begun).total_seconds()


def _drawn(nodes: int) -> float:
    """Bytes that one of so many nodes draws in a step."""
    return STEP * min(60e6, 1.25e9 / nodes)


def _pulling(fetch: Fetch, now: datetime) -> PullPod:
    name = f"{fetch.want.id}/{fetch.node}"
    return PullPod(
        uid=name,
        name=name,
        node=fetch.node,
        want=fetch.want.id,
        image=fetch.want.image,
        step=Step.PULLING,
        since=now,
        created=now,
        begun=now,
    )


def measure_quiet(cluster: Cluster, args: argparse.Namespace) -> Figures:
    """Count what is asked while nothing changes but heartbeats."""
    return asyncio.run(_quiet(cluster, args))


async def _quiet(cluster: Cluster, args: argparse.Namespace) -> Figures:
    cluster.kubectl("create", "namespace", "bench-quiet")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = stack.enter_context(account(cluster, "bench-quiet", folder))
        stack.enter_context(mock.patch.object(acting, "build_pull_pod", _played(0.2)))
        given = {"pods": {"namespace": "bench-quiet"}}
        async with running(config, build_catalog(2), folder, **given) as found:
            await found.until(lambda: found.states()["pulled"] == 2 * args.nodes, what="warm fleet")
            await found.until(found.all_ended, what="end of all containers")
            return await _count(found, args.seconds)


async def _count(found: Running, seconds: float) -> Figures:
    found.requests.clear()
    looks, processor = found.looks(), time.process_time()
    await asyncio.sleep(seconds)
    print(f"requests: {dict(found.requests)}", file=sys.stderr)
    return {
        "seconds": seconds,
        "requests": sum(found.requests.values()),
        "writes": sum(n for name, n in found.requests.items() if not name.startswith("GET")),
        "looks": found.looks() - looks,
        "processorShare": (time.process_time() - processor) / seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["plan", "link", "warm", "quiet"], action="append")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--pull", type=float, default=5, help="seconds that one pull is played to take")
    parser.add_argument("--seconds", type=float, default=600, help="how long `quiet` looks")
    args = parser.parse_args()
    parts = args.only or ["plan", "link", "warm", "quiet"]
    figures: dict[str, Figures] = {}

    def tell(name: str, found: Figures) -> None:
        figures[name] = found
        rows = [f"| {key} | {number:.4g} |" for key, number in found.items()]
        print("\n".join([f"| {name} | |", "|---|---|", *rows]), flush=True)

    if "plan" in parts:
        tell("plan", measure_plan(args))
    if "link" in parts:
        tell("link", measure_link(args))
    if clustered := [name for name in parts if name not in {"plan", "link"}]:
        pool = {"name": POOL, "count": args.nodes, "labels": {LABEL: POOL}}
        spec = parse({"size": "control", "kwok": [pool]}, source="bench")
        with cluster_running(spec, like="bench") as cluster:
            for name in clustered:
                tell(name, {"warm": measure_warm, "quiet": measure_quiet}[name](cluster, args))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
