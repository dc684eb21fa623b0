"""What a preflight looks at: objects of the cluster, values of the chart, the catalog.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final

from hub_ext.catalog.compose import Workspace, combinations, compose
from hub_ext.catalog.model import Catalog, Pool
from hub_ext.catalog.profiles import State
from hub_ext.cluster.nodes import Node, read_node, selects
from hub_ext.errors import SelectionError
from hub_ext.importer.values import helm_merge
from hub_ext.quota.refusals import Answer
from hub_ext.render.rights import PULLS, RUNS, Places
from hub_ext.rights import Rights

Object = Mapping[str, Any]

MOST_COMBINATIONS: Final = 200
"""Of one profile; what a profile asks for is known long before."""


class Objects:
    """Objects of a cluster by kind; a kind that nobody looked at is not the same as one without objects."""

    def __init__(self, found: Mapping[str, Iterable[Object]]) -> None:
        self._found = {kind: tuple(objects) for kind, objects in found.items()}

    def seen(self, kind: str) -> bool:
        return kind in self._found

    def of(self, kind: str) -> tuple[Object, ...]:
        """Give all objects of a kind; none for one that was not looked at: ask `seen` first."""
        return self._found.get(kind, ())

    def inside(self, kind: str, namespace: str) -> tuple[Object, ...]:
        """Give those of one namespace."""
        return tuple(one for one in self.of(kind) if one["metadata"].get("namespace", "") == namespace)

    def named(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Give one object."""
        return next((one for one in self.inside(kind, namespace) if one["metadata"]["name"] == name), None)


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What a Prometheus has of NVIDIA's exporter."""

    fields: frozenset[str]
    """Names of the metrics that have samples now."""
    pod_label: str
    """Label that names the pod that uses a card: ``pod`` or ``exported_pod``; empty if none has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What the API server said to a pod that it was not to make."""

    profile: str
    namespace: str
    refusal: Answer | None
    """None if it would make it."""


ServerKey = tuple[str, str]
"""Names of a user and of one of their servers; empty for the default one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFacts:
    """What a running hub says of itself; what its token may not see is None."""

    version: str
    spawner: str | None
    """Its class with its package."""
    services: Mapping[str, Mapping[str, Any]] | None
    """Of the hub, by name: `url`, `roles`, `admin`."""
    health: Mapping[str, str]
    """Of the services that are wanted, as the proxy gives it to anyone: empty for well, or what is wrong."""
    running: frozenset[ServerKey] | None = None
    """Servers that run or are about to, around the moment at which the cluster was looked at."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Everything that checks may look at; what is None was not given."""

    objects: Objects
    namespace: str
    """Where workspaces run, unless a team has a namespace of its own."""
    hub_namespace: str
    catalog: Catalog | None = None
    values: Mapping[str, Any] | None = None
    """Of the chart, merged as Helm merges them, without the chart's own."""
    layers: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """The files of values, in their order."""
    metrics: Metrics | None = None
    trials: tuple[Trial, ...] | None = None
    """Answers to a dry run."""
    hub: HubFacts | None = None
    jobs_namespace: str = RUNS
    """Where runs are."""
    pulls_namespace: str = PULLS
    """Where the prepuller's pods are."""
    rights: tuple[Rights, ...] = ()
    """Of the hub and of the services that are wanted."""

    @property
    def hub_spawner(self) -> str | None:
        return self.hub.spawner if self.hub else None

    @property
    def hub_services(self) -> Mapping[str, Mapping[str, Any]] | None:
        return self.hub.services if self.hub else None

    @property
    def hub_running(self) -> frozenset[ServerKey] | None:
        return self.hub.running if self.hub else None

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(read_node(one) for one in self.objects.of("Node"))

    @property
    def pool_nodes(self) -> tuple[Node, ...] | None:
        """The nodes of all pools; None if there is none to judge by, though the catalog has pools."""
        if self.catalog is None or not self.objects.seen("Node"):
            return None
        found = tuple(node for pool in self.pools.values() for node in self.nodes_of(pool))
        return found or (None if self.pools else ())

    @property
    def pods_on_gpus(self) -> tuple[str, ...] | None:
        """Running pods that hold GPUs of NVIDIA; None if there are none to judge by."""
        running = (pod for pod in self.objects.of("Pod") if pod.get("status", {}).get("phase") == "Running")
        return tuple(pod["metadata"]["name"] for pod in running if _holds_gpus(pod)) or None

    @property
    def pools(self) -> Mapping[str, Pool]:
        return self.catalog.pools if self.catalog else {}

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """All namespaces of workspaces: the one that was named, and those of teams."""
        teams = self.catalog.teams.values() if self.catalog else ()
        return tuple(dict.fromkeys([self.namespace, *(team.namespace for team in teams if team.namespace)]))

    @property
    def places(self) -> Places:
        return Places(
            hub=self.hub_namespace,
            workspaces=self.namespaces,
            jobs=self.jobs_namespace,
            pulls=self.pulls_namespace,
        )

    @cached_property
    def workspaces(self) -> tuple[Workspace, ...]:
        """Everything that users can start, each kind of request once."""
        return tuple(_workspaces(self.catalog)) if self.catalog else ()

    def nodes_of(self, pool: Pool) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if selects(node, pool.node_selector))

    def value(self, path: str) -> Any:
        """Give one of the values by its dotted path; None if it is not set."""
        found: Any = self.values
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


def _holds_gpus(pod: Mapping[str, Any]) -> bool:
    limits = (one.get("resources", {}).get("limits") or {} for one in pod["spec"].get("containers") or ())
    return any(
        name.startswith("nvidia.com/") and str(n) != "0" for each in limits for name, n in each.items()
    )


def _workspaces(catalog: Catalog) -> Iterator[Workspace]:
    told = set()
    for profile in catalog.profiles:
        if profile.state is State.RETIRED:
            continue
        for number, picks in enumerate(combinations(profile)):
            if number >= MOST_COMBINATIONS:
                break
            try:
                made = compose(catalog, profile, picks)
            except SelectionError:
                continue  # a combination that nobody can start
            kind = (
                profile.name,
                profile.version,
                str(made.image_key),
                str(made.resources),
                str(made.storage),
            )
            if kind not in told:
                told.add(kind)
                yield made


def merged(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge files of values in their order, as Helm does."""
    return reduce(helm_merge, layers, {})
