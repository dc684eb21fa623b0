"""The one view of the cluster that all spawners of a hub share: made when it is first asked for.

It belongs to the event loop that it was made in and ends with it: the hub cancels all tasks when it stops.

Shell: keeps what this process shares.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kubernetes_asyncio.client import ApiClient

from ..audit import StartLog
from ..catalog.model import Catalog
from ..metrics import Metrics
from ..prepuller_link import PrepullerLink
from ..quota.demand import weights_of
from .hub import HubCluster
from .offer import Rules
from .placement import ANYWHERE, Placement
from .prepulled import Prepulled
from .sources import sources
from .state import ClusterState
from .watch import ClusterWatch

_shared: tuple[asyncio.AbstractEventLoop, HubCluster] | None = None
_asking: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a hub's configuration says about its view of the cluster."""

    namespaces: tuple[str, ...]
    """Where workspaces are: the hub may list pods there."""
    run_namespaces: tuple[str, ...] = ()
    """Where runs are that count too; what may not be seen there is not counted."""
    start_log: str = ""
    """Path of the file that starts are kept in; empty for none."""
    prepuller: tuple[str, str] = ("", "")
    """URL of the prepuller and a token that may use it; empty for none."""
    placement: Placement = ANYWHERE


def shared_cluster(api: ApiClient, catalog: Catalog, sight: Sight) -> HubCluster:
    """Give the hub's view of the cluster; the first who asks decides what it watches."""
    global _shared  # noqa: PLW0603 - one per process is the point
    loop = asyncio.get_running_loop()
    if _shared is None or _shared[0] is not loop:
        weights = weights_of(catalog)
        watched = sources(api, sight.namespaces, sight.run_namespaces)
        watch = ClusterWatch(ClusterState(weights), watched, told=shared_metrics().show_watch)
        rules = Rules(catalog=catalog, weights=weights)
        log = StartLog(Path(sight.start_log)) if sight.start_log else StartLog()
        cluster = HubCluster(watch, rules, starts=log, metrics=shared_metrics(), placement=sight.placement)
        shared_metrics().promised.set_function(lambda: len(cluster.bookings.promised()))
        _shared = loop, cluster
        _ask_prepuller(cluster, *sight.prepuller)
    return _shared[1]


def _ask_prepuller(cluster: HubCluster, url: str, token: str) -> None:
    """Let the prepuller's word count in place of the nodes' lists, if there is a prepuller."""
    if not url:
        return

    def take(told: Prepulled) -> None:
        cluster.supplies.prepulled = told

    task = asyncio.get_running_loop().create_task(
        PrepullerLink(url, token, told=take).run(), name="ask the prepuller"
    )
    _asking.add(task)
    task.add_done_callback(_asking.discard)


@cache
def shared_metrics() -> Metrics:
    """Give the metrics of this process: a registry takes each name only once."""
    return Metrics()
