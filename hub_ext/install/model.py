"""An installation: which services it has, where they run, and what an admin decides besides.

Pure: no clock, no network.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from ..catalog.base import Memory, Model, Name, ObjectName, Text
from ..catalog.images import ImageRef
from ..render.rights import PREFIX, PULLS, RUNS, Places
from .network import SERVICE_PORT

FIRST_PORT: Final = 10101
"""Of services in the hub's pod; each has its own."""


class RunAs(StrEnum):
    """Where services run."""

    IN_HUB = "in-hub"
    """As processes of the hub, in its pod and with its account: nothing more to run, nothing kept apart."""
    DEPLOYMENTS = "deployments"
    """Each in a pod of its own, with its own account and policy."""


class ServiceEntry(Model):
    """One service of an installation."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """What stands in the service's file; see its reference."""
    volume: Memory | None = None
    """Size of a volume at `/var/lib/gpu-workspaces`, for one that remembers things."""


class Installation(Model):
    """What an admin decides; the rest follows."""

    run: RunAs
    """Where services run."""
    hub_namespace: Name = "jupyterhub"
    """Namespace of the chart's release."""
    team_namespaces: tuple[Name, ...] = ()
    """Namespaces that the catalog gives to teams."""
    jobs_namespace: Name = RUNS
    """Where runs are; nothing else should be there."""
    pulls_namespace: Name = PULLS
    """Where images are fetched."""
    monitoring_namespace: ObjectName | None = None
    """Where Prometheus is."""
    image: ImageRef | None = None
    """Image of services that have pods of their own."""
    services: dict[Name, ServiceEntry] = Field(default_factory=dict)
    """Services by their names."""
    catalog: Text
    """File with the catalog, or with values that have it, from the folder of this one."""
    values: tuple[Text, ...]
    """Files of values for Helm, in their order, from the folder of this one."""

    @property
    def places(self) -> Places:
        return Places(
            hub=self.hub_namespace,
            workspaces=self.team_namespaces,
            jobs=self.jobs_namespace,
            pulls=self.pulls_namespace,
        )

    def port_of(self, service: str) -> int:
        if self.run is RunAs.DEPLOYMENTS:
            return SERVICE_PORT
        return FIRST_PORT + sorted(self.services).index(service)

    def url_of(self, service: str) -> str:
        """Give the address of a service for proxy and workspaces of any namespace."""
        host = "hub" if self.run is RunAs.IN_HUB else service
        return f"http://{host}.{self.hub_namespace}:{self.port_of(service)}"


def labels_of(service: str) -> dict[str, str]:
    """Give the labels of a service's own pods."""
    return {"app.kubernetes.io/name": f"{PREFIX}-{service}"}
