"""A hub, a cluster and a Prometheus in memory with a culler beside them, and a clock that tests move."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from hub_ext.catalog.model import Catalog
from hub_ext.protocol import Attribution, Document, Kernel, Process, Report, SelfTest
from services.hub import Hub
from services.idle_culler.book import Book
from services.idle_culler.culler import Culler, Tools
from services.idle_culler.measure import Meter
from services.idle_culler.memory import Store
from services.idle_culler.metrics import CullerMetrics
from services.idle_culler.notices import Notice
from services.idle_culler.notify import Notifier
from services.idle_culler.observe import Observer
from services.idle_culler.policy import Policy
from services.idle_culler.queries import Queries, build_queries
from services.idle_culler.rights import RIGHTS
from services.idle_culler.stopping import Stopper
from services.prometheus import Prometheus
from tests.fakes.culler import NOON
from tests.fakes.hub import FakeHub
from tests.fakes.kube import FakeKube
from tests.fakes.prometheus import FakePrometheus

NAMESPACE = "hub"
CULLER_RIGHTS = [
    {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
    for rule in RIGHTS.rules
]


class Outbox(Notifier):
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Notice] = []

    def send(self, notice: Notice) -> None:
        self.sent.append(notice)


def pod_name(user: str, server: str = "") -> str:
    """A name as a spawner makes it of whatever users are called."""
    return _slug(f"jupyter-{user}" + (f"--{server}" if server else ""))


def claim_name(user: str) -> str:
    return _slug(f"claim-{user}")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9-]", "-", text.lower())


def build_pod(user: str, *, gpus: int = 1, server: str = "", **labels: str) -> dict[str, Any]:
    """A pod as the spawner makes it."""
    name = pod_name(user, server)
    requests = {"cpu": "1", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"component": "singleuser-server", **labels},
            "annotations": {"hub.jupyter.org/username": user, "hub.jupyter.org/servername": server},
        },
        "spec": {
            "containers": [{"name": "notebook", "resources": {"requests": requests}}],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": claim_name(user)}}],
        },
        "status": {"phase": "Running"},
    }


def build_claim(user: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name(user), "namespace": NAMESPACE},
    }


class LinkedHub(FakeHub):
    """A hub whose stops take pods away."""

    def __init__(self, kube: FakeKube) -> None:
        super().__init__()
        self.kube = kube
        self.pods_remain = False

    def answer(self, request: httpx.Request) -> httpx.Response:
        before = len(self.stopped)
        answer = super().answer(request)
        for stopped in self.stopped[before:] if not self.pods_remain else ():
            user, _, server = stopped.partition("/")
            name = pod_name(user, server)
            self.kube.drop_for_test(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
        return answer


class CulledHub:
    """All of it; `minutes` lets time pass, one pass a minute."""

    def __init__(self, policy: Mapping[str, Any], *, state: Path | None = None) -> None:
        self.now = NOON
        self.kube = FakeKube(rights=CULLER_RIGHTS)
        self.hub, self.prometheus = LinkedHub(self.kube), FakePrometheus()
        self.prometheus.clock = lambda: self.now
        self.queries: Queries = build_queries(600, cpu_matchers='namespace=~"hub"')
        self.policy = Policy.model_validate({"mode": "act", "grace": "0s", **policy})
        self.state, self.catalog = state, None
        self.token = self.hub.token(*(scope.name for scope in RIGHTS.scopes))
        self.use: dict[str, float] = {}
        """Use of the GPU by pod; those that are not here have no readings."""
        self.cores: dict[str, float] = {}
        self.numbers, self.ticks = 0, timedelta()
        self.restart()

    def restart(self, catalog: Catalog | None = None) -> None:
        """Begin a new process of the culler, with what the one before has written."""
        self.outbox, self.registry = Outbox(), CollectorRegistry()
        hub = Hub(FakeHub.URL, self.token, transport=self.hub.transport)
        prometheus = Prometheus(FakePrometheus.URL, transport=self.prometheus.transport)
        observer = Observer(
            hub,
            self.kube,  # type: ignore[arg-type]
            Meter(prometheus, namespaces=[NAMESPACE]),
            namespaces=[NAMESPACE],
            clock=lambda: self.now,
        )
        store = Store(self.state)
        book = Book(
            policy=self.policy,
            observer=observer,
            memory=store.load(),
            clock=lambda: self.now,
            every=timedelta(minutes=1),
            catalog=catalog,
        )
        self.culler = Culler(
            book,
            Tools(
                stopper=Stopper(hub, observer, clock=self.tick, poll=0),
                store=store,
                notifier=self.outbox,
                metrics=CullerMetrics(self.registry),
            ),
        )

    def notify_with(self, notifier: Notifier) -> None:
        """Send notices in another way."""
        self.culler = Culler(self.culler.book, replace(self.culler.tools, notifier=notifier))

    def add(
        self,
        user: str,
        server: str = "",
        *,
        gpus: int = 1,
        use: float | None = 0.0,
        cores: float | None = 0.01,
        quiet: timedelta = timedelta(hours=3),
        **labels: str,
    ) -> str:
        """Add a server that is up since four hours, with its pod, claim and readings."""
        if user not in self.hub.users:
            self.hub.add_user(user)
        self.hub.add_server(
            user, server, started=self.now - timedelta(hours=4), last_activity=self.now - quiet
        )
        pod = build_pod(user, gpus=gpus, server=server, **labels)
        self.kube.put_for_test(pod)
        self.kube.put_for_test(build_claim(user))
        name: str = pod["metadata"]["name"]
        if gpus and use is not None:
            self.use[name] = use
        if cores is not None:
            self.cores[name] = cores
        return name

    def put_metrics(self) -> None:
        """Let Prometheus answer what the readings are."""
        series = {
            name: {
                "exported_namespace": NAMESPACE,
                "exported_pod": name,
                "UUID": f"GPU-{name}",
                "instance": "a",
            }
            | {"namespace": "monitoring", "pod": "dcgm-exporter-x", "instance": "a", "meter": "engine"}
            for name in self.use
        }
        put = self.prometheus.put
        put(self.queries.largest, *((series[name], use) for name, use in self.use.items()))
        put(self.queries.samples, *((labels, 20.0) for labels in series.values()))
        put(self.queries.age, *((labels, 12.0) for labels in series.values()))
        pods = {name: {"namespace": NAMESPACE, "pod": name} for name in self.cores}
        put(self.queries.cores, *((pods[name], cores) for name, cores in self.cores.items()))
        put(self.queries.cores_samples, *((labels, 1.0) for labels in pods.values()))

    async def passes(self, minutes: int = 1) -> None:
        """Let so many minutes pass, with a pass at the end of each."""
        for _ in range(minutes):
            self.now += timedelta(minutes=1)
            self.put_metrics()
            await self.culler.once()

    def tick(self) -> datetime:
        """Read the clock of the stopper, for which time passes only as it looks."""
        self.ticks += timedelta(seconds=30)
        return self.now + self.ticks

    async def stops(self) -> list[str]:
        """Wait for the stops that have begun; returns all that the hub was told to stop."""
        await self.culler.drain()
        return self.hub.stopped

    def report(self, user: str, server: str = "", **fields: Any) -> Report:
        """A report of a workspace in which nothing runs, unless said otherwise."""
        self.numbers += 1
        rest: dict[str, Any] = {
            "server": server,
            "agent": "a1",
            "number": self.numbers,
            "sent": self.now,
            "window_seconds": 30.0,
            "kernels": (Kernel(id="k1", state="idle", state_seconds=9000.0),),
            "self_test": SelfTest(attribution=Attribution.TRUSTED),
        }
        return Report(**{**rest, **fields})

    def hear(self, user: str, server: str = "", **fields: Any) -> None:
        """Let a workspace report."""
        self.culler.hear(user, self.report(user, server, **fields))


BUSY = (Process(pid=7, command="python", origin="kernel", owner="k1", cpu=0.9),)
UNSAVED = (Document(path="a.ipynb"),)

__all__ = ["BUSY", "NAMESPACE", "UNSAVED", "CulledHub", "build_claim", "build_pod", "datetime"]
