"""Objects on a development cluster for the benchmarks: running pods, recent events, users who wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kubernetes_asyncio import config
from kubernetes_asyncio.client import CoreV1Api

AT_ONCE = 48
NOWHERE = {"benchmark": "nowhere"}
PAD = {f"SETTING_{number}": "x" * 180 for number in range(24)}
"""Environment of a usual size: with managed fields and status a pod has about nine kilobytes."""


@asynccontextmanager
async def client(kubeconfig: Path) -> AsyncIterator[CoreV1Api]:
    """A client as the hub has one."""
    async with await config.new_client_from_config(config_file=str(kubeconfig)) as api:
        yield CoreV1Api(api)


async def all_of(calls: Iterable[Callable[[], Awaitable[Any]]]) -> list[Any]:
    """Make calls, not too many at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: Callable[[], Awaitable[Any]]) -> Any:
        async with gate:
            return await call()

    return await asyncio.gather(*(one(call) for call in calls))


def build_pod(user: str, *, node: str | None) -> dict[str, Any]:
    """The pod of a user's server, as large as KubeSpawner makes it."""
    env = [{"name": name, "value": value} for name, value in PAD.items()]
    return {
        "metadata": {
            "name": f"jupyter-{user}",
            "labels": {"component": "singleuser-server", "app": "jupyterhub"},
            "annotations": {"hub.jupyter.org/username": user},
        },
        "spec": {
            "containers": [
                {
                    "name": "notebook",
                    "image": "registry.example.com/notebook@sha256:" + "a" * 64,
                    "env": env,
                    "ports": [{"name": "notebook-port", "containerPort": 8888}],
                    "resources": {"limits": {"cpu": "10m", "memory": "16Mi"}},
                }
            ],
            "automountServiceAccountToken": False,
            **({"nodeName": node} if node else {"nodeSelector": NOWHERE}),
        },
    }


def build_event(number: int, about: dict[str, Any], reason: str, message: str) -> dict[str, Any]:
    """An event as the kubelet writes it."""
    moment = (datetime.now(UTC) - timedelta(seconds=number % 3000)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"name": f"{about['name']}.{number:x}"},
        "involvedObject": {"kind": "Pod", "apiVersion": "v1", **about},
        "reason": reason,
        "message": message,
        "type": "Normal",
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
        "source": {"component": "kubelet"},
    }


async def fill(core: CoreV1Api, namespace: str, *, pods: int, events: int, users: int) -> None:
    """Make running pods, pods that wait for a node, and events about the running ones."""
    nodes = [node.metadata.name for node in (await core.list_node()).items]
    running = [build_pod(f"runs-{number}", node=nodes[number % len(nodes)]) for number in range(pods)]
    waiting = [build_pod(f"waits-{number}", node=None) for number in range(users)]
    made = await all_of(
        (lambda pod=pod: core.create_namespaced_pod(namespace, pod)) for pod in (*running, *waiting)
    )
    about = [
        {"name": pod.metadata.name, "namespace": namespace, "uid": pod.metadata.uid} for pod in made[:pods]
    ]
    reasons = ("Scheduled", "Pulling", "Pulled", "Created", "Started")
    await all_of(
        (
            lambda number=number: core.create_namespaced_event(
                namespace,
                build_event(number, about[number % pods], reasons[number % 5], "Something usual happened."),
            )
        )
        for number in range(events)
    )
