"""Looking: servers of the hub, their pods, and what Prometheus says about them.

Each source may fail by itself; then its part is missing. Only without the hub there is nothing to look at.

Shell: asks the hub and Kubernetes; Prometheus through `measure`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

from hub_ext.cluster.pods import Pod, read_pod
from hub_ext.errors import HubError, KubeError, RemoteError
from hub_ext.gpu.resources import is_accelerator
from hub_ext.names import (
    LABEL_GPU_SHARING,
    LABEL_PROFILE,
    LABEL_PROFILE_VERSION,
    LABEL_TEAM,
    server_of,
)
from hub_ext.quota.arithmetic import FINISHED_PHASES
from hub_ext.quota.demand import COMPONENT_LABEL, SINGLEUSER

from ..hub import Hub, Server, State, User
from ..kube import Kube, api_path
from ..kube_parts import Object
from .facts import HubFacts, PodFacts
from .measure import Meter, Metrics
from .signal import is_due_again, is_old

log = logging.getLogger(__name__)

Key = tuple[str, str]
T = TypeVar("T")
SERVERS: Final = f"{COMPONENT_LABEL}={SINGLEUSER}"
NEWCOMERS: Final = 50
"""Users that are read by themselves in one pass; more wait for the next list."""


@dataclass(slots=True, kw_only=True)
class View:
    """All that was seen last, source by source."""

    servers: dict[Key, HubFacts] = field(default_factory=dict)
    listed: datetime | None = None
    unlisted: frozenset[Key] = frozenset()
    """Servers that may stand in what could not be read of the last list: nobody knows how they are now."""
    pods: Mapping[Key, PodFacts] | None = None
    """None where they cannot be listed."""
    metrics: Metrics | None = None
    problems: dict[str, str] = field(default_factory=dict)
    """What is wrong with a source; those that are well are not in it."""


class Observer:
    """Keeps a `View` up to date."""

    def __init__(
        self,
        hub: Hub,
        kube: Kube | None,
        meter: Meter | None,
        *,
        namespaces: Sequence[str],
        clock: Callable[[], datetime],
        list_hub_every: timedelta = timedelta(minutes=5),
    ) -> None:
        self._hub, self._kube, self._meter = hub, kube, meter
        self._namespaces = tuple(namespaces)
        self._clock = clock
        self._list_hub_every = list_hub_every
        self._asking = asyncio.Lock()
        self.view = View()

    @property
    def sees_pods(self) -> bool:
        """Whether there is a cluster to look at."""
        return self._kube is not None

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all that is asked."""
        return (
            "hub",
            *(("kubernetes",) if self._kube else ()),
            *(("gpus", "processors") if self._meter else ()),
        )

    async def look(self, newcomers: Collection[str] = ()) -> View:
        """Look at everything; raises `HubError` if the hub does not answer.

        Parameters
        ----------
        newcomers
            Users to read by themselves, where it is not yet time to list all.
        """
        view, now = self.view, self._clock()
        is_due = view.listed is None or is_due_again(view.listed, now, self._list_hub_every)
        try:
            await (self._list(now) if is_due else self._read(newcomers))
        except HubError as error:
            self._note("hub", str(error))
            raise
        # Pods come and go with servers; each is read again before its stop.
        if is_due or newcomers or view.pods is None:
            view.pods = await self._tried("kubernetes", self._pods)
        await self._measure()
        return view

    async def _list(self, now: datetime) -> None:
        """Read all servers; a list that fails is asked for again at the next look."""
        view, lost = self.view, list[HubError]()
        view.listed = None
        found = _ready(await self._hub.users(state=State.READY, lost=lost))
        view.unlisted = frozenset(view.servers.keys() - found.keys()) if lost else frozenset()
        view.servers = {key: view.servers[key] for key in view.unlisted} | found
        view.listed = None if lost else now
        self._note("hub", f"not all servers could be read: {lost[0]}" if lost else "")

    async def _read(self, newcomers: Collection[str]) -> None:
        for user in sorted(newcomers)[:NEWCOMERS]:
            found = await self._hub.user(user)
            self.view.servers |= _ready([found] if found else [])
            self._note("hub", "")

    async def server(self, key: Key) -> HubFacts | None:
        """Read one server as the hub has it now; None if it does not run."""
        found = await self._hub.server(*key)
        if found is None:
            self.view.servers.pop(key, None)
            return None
        self.view.servers[key] = hub_facts(found)
        return self.view.servers[key]

    async def metrics(self, *, no_older_than: timedelta) -> Metrics | None:
        """Give metrics of late; many that ask at once cause one round of questions."""
        async with self._asking:
            found = self.view.metrics
            if found is None or is_old(found.at, self._clock(), no_older_than):
                await self._measure()
        return self.view.metrics

    async def again(self, pod: PodFacts) -> PodFacts | None:
        """Read a pod as it is now; None if it is gone, or if another one has its name."""
        if self._kube is None:
            return pod
        item = await self._kube.find(api_path("v1", "pods", pod.name, namespace=pod.namespace))
        if item is None or item["metadata"]["uid"] != pod.uid:
            return None
        return pod_facts(read_pod(item))

    async def has_claim(self, namespace: str, claim: str) -> bool:
        """Say whether a claim exists."""
        if self._kube is None:
            raise KubeError("there is no cluster to ask", kind="persistentvolumeclaims", name=claim)
        path = api_path("v1", "persistentvolumeclaims", claim, namespace=namespace)
        return await self._kube.find(path) is not None

    async def _pods(self) -> dict[Key, PodFacts] | None:
        if self._kube is None:
            return None
        items: list[Object] = []
        for namespace in self._namespaces:
            items += await self._kube.list(api_path("v1", "pods", namespace=namespace), labelSelector=SERVERS)
        return await asyncio.to_thread(_read_pods, items)

    async def _measure(self) -> None:
        meter = self._meter
        if meter is None:
            return
        at, pods = self._clock(), self.view.pods or {}
        holding = [(pod.namespace, pod.name) for pod in pods.values() if pod.devices]
        others = [(pod.namespace, pod.name) for pod in pods.values() if not pod.devices]
        gpus = await self._tried("gpus", lambda: meter.gpus(at, holding, others))
        cpus = await self._tried("processors", lambda: meter.cpus(at))
        self.view.metrics = Metrics(at=at, gpus=gpus, cpus=cpus)

    async def _tried(self, source: str, look: Callable[[], Awaitable[T | None]]) -> T | None:
        try:
            found = await look()
        except RemoteError as error:
            self._note(source, str(error))
            return None
        self._note(source, "")
        return found

    def _note(self, source: str, problem: str) -> None:
        """Log what is new about a source."""
        before = self.view.problems.pop(source, "")
        if problem:
            self.view.problems[source] = problem
        if problem and not before:
            log.warning("source lost: source=%s problem=%s", source, problem)
        elif before and not problem:
            log.info("source back: source=%s", source)


def _ready(users: Iterable[User]) -> dict[Key, HubFacts]:
    return {
        (user.name, name): hub_facts(server)
        for user in users
        for name, server in user.servers.items()
        if server.ready
    }


def _read_pods(items: Iterable[Object]) -> dict[Key, PodFacts]:
    """Give the pod of each server. Of several, one may be alive; of two it is not known which it is."""
    found: dict[Key, list[Pod]] = defaultdict(list)
    for item in items:
        pod = read_pod(item)
        if pod.deleted is None:
            found[key_of(pod)].append(pod)
    alive = {
        key: [pod for pod in pods if pod.phase not in FINISHED_PHASES] or pods for key, pods in found.items()
    }
    return {key: pod_facts(pods[0]) for key, pods in alive.items() if len(pods) == 1}


def hub_facts(server: Server) -> HubFacts:
    """Keep of a hub's record what is judged."""
    return HubFacts(
        started=server.started,
        last_activity=server.last_activity,
        ready=server.ready,
        pending=server.pending,
    )


def key_of(pod: Pod) -> Key:
    """Say whose pod it is: the exact names stand in annotations."""
    return server_of(pod.notes)


def pod_facts(pod: Pod) -> PodFacts:
    """Keep of a pod what is judged."""
    version = pod.labels.get(LABEL_PROFILE_VERSION, "")
    return PodFacts(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.node,
        running=pod.phase == "Running",
        devices={name: int(n) for name, n in pod.requests.items() if is_accelerator(name) and n},
        sharing=pod.labels.get(LABEL_GPU_SHARING, ""),
        profile=pod.labels.get(LABEL_PROFILE, ""),
        version=int(version) if version.isascii() and version.isdigit() else None,
        team=pod.labels.get(LABEL_TEAM, ""),
        claims=pod.claims,
    )
