"""KubeSpawner on the hub's one watch: what runs, what is free, and who may have how much.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `_start_watching_pods`, `_start_watching_events`: upstream lists all pods again every ten seconds, and
  sorts all events every second for everybody who waits.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

from traitlets import List, TraitError, Unicode, validate

from .catalog.compose import Workspace
from .catalog.model import Catalog
from .cluster.hub import HubCluster
from .cluster.kinds import Kind
from .cluster.offer import Offer
from .cluster.placement import read_placement
from .cluster.reflector import NoEvents, SharedPods
from .cluster.shared import Sight, shared_cluster
from .cluster.sources import DeniedError
from .cluster.watch import Health
from .config import OWN_NAMESPACES
from .form.room import Look
from .quota.usage import Owner
from .selection import Refusal
from .spawner_requests import RequestSpawner

_PAGE_SECONDS: Final = 1.0
"""How long a page waits for the first picture of the cluster after the hub has started."""


class ClusterSpawner(RequestSpawner):
    """Knows what the cluster and its limits have room for."""

    run_namespaces = List(
        Unicode(),
        config=True,
        help="""
        Namespaces with runs that were made from workspaces, beside those of the hub and the teams: they count
        against the same limits. The hub has to be allowed to list and watch pods there.
        """,
    )
    start_log = Unicode(
        config=True,
        help="""
        File to keep one line of JSON about each start in, for `gpu-workspaces phases` and for what starts
        usually take. It names no user. Default: none is kept across restarts of the hub.
        """,
    )

    prepuller_url = Unicode(
        config=True,
        help="""
        Where the prepuller is, such as `http://hub:10103/services/prepuller/`: the spawn page then says what
        is warm by its word. Default: by what nodes list, which does not say who may use it.
        """,
    )
    prepuller_token = Unicode(config=True, help="Token that may use the prepuller; as a rule its own.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hub_namespace: str = self.namespace

    @property
    def _catalog(self) -> Catalog:
        raise NotImplementedError

    @validate("enable_user_namespaces")
    def _check_namespaces(self, proposal: Any) -> bool:
        if proposal["value"]:
            raise TraitError(OWN_NAMESPACES)
        return False

    @property
    def _cluster(self) -> HubCluster:
        return shared_cluster(self.api.api_client, self._catalog, self._sight)

    @cached_property
    def _sight(self) -> Sight:
        teams = (team.namespace for team in self._catalog.teams.values())
        return Sight(
            namespaces=(self._hub_namespace, *(name for name in teams if name)),
            run_namespaces=tuple(self.run_namespaces),
            start_log=self.start_log,
            prepuller=(self.prepuller_url, self.prepuller_token),
            placement=read_placement(self.node_selector, self.tolerations),
        )

    def _namespace_of(self, team: str | None) -> str:
        found = self._catalog.teams.get(team or "")
        return (found and found.namespace) or self._hub_namespace

    async def _look(self, server_name: str) -> Look | None:
        """Give what says what this user may start now; None if the cluster is not known as fast as a page.

        What runs under `server_name` is not counted against the user: it would be replaced.
        """
        cluster = self._cluster
        with suppress(TimeoutError, DeniedError):
            async with asyncio.timeout(_PAGE_SECONDS):
                await cluster.ready()
        if not cluster.watch.is_loaded or pods_health(cluster, self._hub_namespace) is Health.DENIED:
            return None

        def look(workspace: Workspace, team: str) -> Offer:
            owner = Owner(user=self.user.name, team=team)
            namespace = self._namespace_of(team)
            zones = self._zones_of_home(workspace, namespace)
            return cluster.offer(workspace, owner, namespace=namespace, server=server_name, home_zones=zones)

        return look

    def _zones_of_home(self, workspace: Workspace, namespace: str) -> frozenset[str]:
        """Say where the home of a workspace can be attached; empty for anywhere, and if that is not known."""
        raise NotImplementedError

    # The watch

    async def _start_watching_pods(self, replace: bool = False) -> Any:
        cluster = self._cluster
        if pods_health(cluster, self.namespace) is None:
            return await super()._start_watching_pods(replace)
        try:
            await cluster.ready()
        except DeniedError as error:
            if pods_health(cluster, self.namespace) is Health.DENIED:
                self.log.error("The hub may not list and watch the pods in %s: %s", self.namespace, error)
                raise self._refuse(_BLIND) from None
        key = self._get_reflector_key("pods")
        known = self.reflectors.get(key)
        if not isinstance(known, SharedPods) or not known.reads(cluster.watch):
            known = self.reflectors[key] = SharedPods(cluster.watch)
        return known

    async def _start_watching_events(self, replace: bool = False) -> Any:
        cluster = self._cluster
        if pods_health(cluster, self.namespace) is None:
            return await super()._start_watching_events(replace)
        return self.reflectors.setdefault(self._get_reflector_key("events"), NoEvents())


_BLIND: Final = Refusal(
    reason="pods-not-visible",
    text="The hub may not see what runs in the cluster, so it starts nothing. Please tell an administrator.",
    status=HTTPStatus.SERVICE_UNAVAILABLE,
)


def pods_health(cluster: HubCluster, namespace: str) -> Health | None:
    """Say how well the pods of a namespace are known; None if they are not watched at all."""
    return cluster.watch.health_of(f"{Kind.PODS.value} in {namespace}")
