"""How long a pass over 10,000 running servers holds the idle-culler's event loop, beside the whole pass.

    python -m tests.bench.cull_pass

The hub, the cluster and Prometheus answer from a process of their own, over HTTP, in pages as real ones do; a
third of the servers works, and each has a card. What is measured is processor time of the culler's process,
all threads and the garbage collector included: what it uses between two ticks of the event loop is what a
request has to wait for. Prints ratios beside the seconds; says nothing of a machine's speed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes_asyncio.client import ApiClient, Configuration
from prometheus_client import CollectorRegistry

from hub_ext.cluster.watch import utc_now
from services.hub import Hub
from services.idle_culler.app import COLLECT
from services.idle_culler.book import Book
from services.idle_culler.culler import Culler, Tools
from services.idle_culler.measure import Meter
from services.idle_culler.memory import Store
from services.idle_culler.metrics import CullerMetrics
from services.idle_culler.notify import Notifier
from services.idle_culler.observe import Observer
from services.idle_culler.policy import Policy
from services.idle_culler.queries import build_queries
from services.idle_culler.stopping import Stopper
from services.kube import Kube
from services.prometheus import Prometheus
from tests.fakes.culled_hub import NAMESPACE, build_pod, pod_name

WINDOW = 600
NOW = "now"
"""Stands in vectors for the moment that they are asked for."""
RULES = [
    {"when": {"gpu": ["several"], "hours": "20:00-06:00"}, "idleTimeout": "30m"},
    {"when": {"gpu": ["full", "several"]}, "idleTimeout": "90m"},
    {"when": {"teams": ["teaching"]}, "idleTimeout": "never"},
]
POLICY = {
    "mode": "observe",
    "timezone": "Europe/Berlin",
    "rules": RULES,
    "defaults": {"idleTimeout": "2h", "maxDuration": "24h"},
}


class World:
    """Answers of a hub, a cluster and a Prometheus with many servers."""

    def __init__(self, servers: int, now: datetime) -> None:
        names = [f"user-{number:05}" for number in range(servers)]
        self.users = [_user(name, now) for name in names]
        self.pods = [_pod(name, now) for name in names]
        series = [
            {"exported_namespace": NAMESPACE, "exported_pod": pod_name(name), "UUID": f"GPU-{name}"}
            | {"namespace": "monitoring", "pod": "dcgm-exporter", "instance": "a", "GPU_I_ID": ""}
            for name in names
        ]
        cards = [{**labels, "meter": meter} for meter in ("engine", "utilization") for labels in series]
        pods = [{"namespace": NAMESPACE, "pod": pod_name(name)} for name in names]
        queries = build_queries(WINDOW, cpu_matchers=f'namespace=~"{NAMESPACE}"')
        use = [0.8 if number % 3 == 0 else 0.0 for number in range(servers)]
        self.vectors = {
            queries.largest: _vector(cards, use * 2),
            queries.samples: _vector(cards, [20.0] * len(cards)),
            queries.age: _vector(cards, [12.0] * len(cards)),
            queries.cores: _vector(pods, [0.01] * servers),
            queries.cores_samples: _vector(pods, [1.0] * servers),
        }

    def answer(self, target: str, body: bytes) -> bytes:
        """Answer one request."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path.endswith("/query"):
            now = str(time.time()).encode()
            return self.vectors[parse_qs(body.decode())["query"][0]].replace(f'"{NOW}"'.encode(), now)
        if url.path.endswith("/pods"):
            begin, end = int(query.get("continue", 0)), int(query.get("continue", 0)) + int(query["limit"])
            more = {"continue": str(end)} if end < len(self.pods) else {}
            return json.dumps({"metadata": more, "items": self.pods[begin:end]}).encode()
        begin, end = int(query["offset"]), int(query["offset"]) + int(query["limit"])
        following = {"offset": end} if end < len(self.users) else None
        return json.dumps({"items": self.users[begin:end], "_pagination": {"next": following}}).encode()


def _user(name: str, now: datetime) -> dict[str, Any]:
    times = {"started": now - timedelta(hours=4), "last_activity": now - timedelta(hours=3)}
    server = {"name": "", "ready": True, "pending": None, **{k: t.isoformat() for k, t in times.items()}}
    return {"name": name, "kind": "user", "servers": {"": server}}


def _pod(name: str, now: datetime) -> dict[str, Any]:
    """A pod about as long as real ones are, which list every field that somebody has set."""
    pod = build_pod(name)
    pod["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    pod["metadata"]["managedFields"] = [{f"f:field-{n}": {f"f:{m}": {} for m in range(8)}} for n in range(30)]
    return pod


def _vector(series: list[dict[str, str]], values: list[float]) -> bytes:
    result = [
        {"metric": labels, "value": [NOW, str(value)]} for labels, value in zip(series, values, strict=True)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, world: World, *args: Any) -> None:
        self.world = world
        super().__init__(*args)

    def do_GET(self) -> None:
        answer = self.world.answer(self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815 - a name of the library

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""


def _serve(servers: int, now: datetime, pipe: Connection) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, World(servers, now))) as server:
        pipe.send(server.server_address[1])
        server.serve_forever()


@contextmanager
def world(servers: int, now: datetime) -> Iterator[str]:
    """Let another process answer; gives its address."""
    here, there = Pipe()
    process = Process(target=_serve, args=(servers, now, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def build_culler(url: str, kube: Kube, state: Path) -> Culler:
    hub, meter = Hub(f"{url}/hub/api", "token"), Meter(Prometheus(url), namespaces=[NAMESPACE])
    observer = Observer(hub, kube, meter, namespaces=[NAMESPACE], clock=utc_now)
    store = Store(state)
    tools = Tools(
        stopper=Stopper(hub, observer, clock=utc_now),
        store=store,
        notifier=Notifier(),
        metrics=CullerMetrics(CollectorRegistry()),
    )
    policy = Policy.model_validate(POLICY)
    every = timedelta(minutes=1)
    book = Book(policy=policy, observer=observer, memory=store.load(), clock=utc_now, every=every)
    return Culler(book, tools)


class Ticks:
    """Ticks of the event loop, and the processor time that was used between each two of them."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        last = time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.process_time()
            self.longest, last = max(self.longest, now - last), now


async def measure(url: str, args: argparse.Namespace) -> list[Mapping[str, float]]:
    """Do passes, one after the other."""
    found = list[Mapping[str, float]]()
    with tempfile.TemporaryDirectory() as folder:
        async with Kube(ApiClient(configuration=Configuration(host=url))) as kube:
            culler = build_culler(url, kube, Path(folder) / "state.json")
            for _ in range(args.rounds):
                ticks, began = Ticks(), time.process_time()
                task = asyncio.create_task(ticks.run())
                await culler.once()
                whole = time.process_time() - began
                task.cancel()
                found.append({"pass": whole, "longest": ticks.longest})
            if len(culler.book.judged) != args.servers:
                raise AssertionError(f"only {len(culler.book.judged)} servers were judged")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5, help="passes; the first also lists all")
    args = parser.parse_args()
    now = datetime.now(UTC)
    gc.set_threshold(*COLLECT)
    with world(args.servers, now) as url:
        found = asyncio.run(measure(url, args))
    told = {
        "heldOfAPass": [round(one["longest"] / one["pass"], 4) for one in found],
        "passSeconds": [round(one["pass"], 2) for one in found],
        "heldSeconds": [round(one["longest"], 3) for one in found],
    }
    print(json.dumps(told, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
