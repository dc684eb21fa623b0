"""An installation: which services it has, where they run, and what an admin decides besides.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from ipaddress import ip_network
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from ..catalog.base import Memory, Model, Name, ObjectName, Text
from ..catalog.images import ImageRef
from ..catalog.model import Catalog
from ..catalog.rules.teams import is_clusters_own
from ..errors import BadValueError
from ..render.rights import PREFIX, PULLS, RUNS, Places
from .network import HUB, SERVICE_PORT

FIRST_PORT: Final = 10101
"""Of services in the hub's pod; each has its own."""


class RunAs(StrEnum):
    """Where services run."""

    IN_HUB = "in-hub"
    """As processes of the hub, in its pod and with its account: nothing more to run, nothing kept apart."""
    DEPLOYMENTS = "deployments"
    """Each in a pod of its own, with its own account and policy."""


def _check_network(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise BadValueError(f"{text!r} is not a network", help="Write 203.0.113.7/32.") from error


def _check_base_url(text: str) -> str:
    if not re.fullmatch(r"/(?:[A-Za-z0-9._~@-]+/)*", text):
        raise BadValueError(f"{text!r} is not a base URL", help="Write / or /jupyter/.")
    return text


Network = Annotated[str, AfterValidator(_check_network)]
BaseUrl = Annotated[str, AfterValidator(_check_base_url)]
Port = Annotated[int, Field(ge=1, le=65535, strict=True)]


class ApiServer(Model):
    """Where the API server of Kubernetes is, behind `kubernetes.default`: policies see that address."""

    addresses: tuple[Network, ...] = ()
    """Left out, services of their own pods reach any address at the ports. Public ones are to be named: they
    are then left out of what workspaces reach."""
    ports: tuple[Port, ...] = (443, 6443)


class ServiceEntry(Model):
    """One service of an installation."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """What stands in the service's file; see its reference."""
    volume: Memory | None = None
    """Size of a volume at `/var/lib/gpu-workspaces`, for one that remembers things."""
    secret: ObjectName | None = None
    """Secret in the hub's namespace whose keys become variables: `AWS_ACCESS_KEY_ID` of a store."""
    egress: tuple[dict[str, Any], ...] = ()
    """Further rules of its NetworkPolicy, as Kubernetes has them: a mail server, a store in the cluster."""


class Description(Model):
    """What an admin decides; the rest follows."""

    run: RunAs
    """Where services run."""
    hub_namespace: Name = "jupyterhub"
    """Namespace of the chart's release."""
    base_url: BaseUrl = "/"
    """The hub's path, with a slash at both ends."""
    jobs_namespace: Name = RUNS
    """Where runs are; nothing else should be there."""
    pulls_namespace: Name = PULLS
    """Where images are fetched."""
    monitoring_namespace: ObjectName | None = None
    """Where Prometheus is."""
    api_server: ApiServer = ApiServer()
    name_servers: tuple[Network, ...] = ()
    """Where names are resolved outside `kube-system`, such as by a cache on each node: `169.254.20.10/32`."""
    image: ImageRef | None = None
    """Image of services that have pods of their own."""
    pull_secrets: tuple[ObjectName, ...] = ()
    """Names of the pull secrets of hub, proxy, services and workspaces, the same in all their namespaces."""
    services: dict[Name, ServiceEntry] = Field(default_factory=dict)
    """Services by their names."""
    catalog: Text
    """File with the catalog, or with values that have it, from the folder of this one."""
    values: tuple[Text, ...]
    """Files of values for Helm, in their order, from the folder of this one."""


class Installation(Description):
    """A description with what its catalog says."""

    team_namespaces: tuple[Name, ...] = ()
    """Namespaces that the catalog gives to teams."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Runs and pulls have policies for all pods around them: nothing else can be there."""
        others = {self.hub_namespace, *self.team_namespaces, *filter(None, (self.monitoring_namespace,))}
        for field, name in (("jobsNamespace", self.jobs_namespace), ("pullsNamespace", self.pulls_namespace)):
            if name in others or is_clusters_own(name):
                raise BadValueError(
                    f"{field}: {name} is a namespace with pods of another kind",
                    help="Give runs and pulls a namespace each that is theirs alone.",
                )
        self._check_own_pods()
        if self.jobs_namespace == self.pulls_namespace or is_clusters_own(self.hub_namespace):
            raise BadValueError(
                "hub, runs and pulls share a namespace with each other, or with the cluster's own pods",
                help="Give each a namespace of its own.",
            )
        return self

    def _check_own_pods(self) -> None:
        """Refuse what a process of the hub would be given in vain."""
        for name, entry in self.services.items() if self.run is RunAs.IN_HUB else ():
            if entry.volume is not None or entry.secret is not None or entry.egress:
                raise BadValueError(
                    f"services.{name}: volume, secret and egress are for a service in a pod of its own",
                    help="Write run: deployments, or give them to the hub in the chart's values.",
                )

    @classmethod
    def of(cls, description: Description, catalog: Catalog) -> Installation:
        fields = {name: getattr(description, name) for name in Description.model_fields}
        return cls(**fields, team_namespaces=team_namespaces(catalog, but=description.hub_namespace))

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

    def prefix_of(self, service: str) -> str:
        """Give the path of a service, behind its own address and behind the hub's alike."""
        return f"{self.base_url}services/{service}/"

    def home_of(self, service: str) -> str:
        """Give the whole address of a service's pages for workspaces and runs."""
        return self.url_of(service) + self.prefix_of(service)

    def pods_of(self, service: str) -> dict[str, str]:
        """Give the labels of the pods that a service runs in."""
        return HUB if self.run is RunAs.IN_HUB else labels_of(service)


def team_namespaces(catalog: Catalog, *, but: str) -> tuple[str, ...]:
    """Give the namespaces of a catalog's teams, less the hub's own."""
    named: Iterable[str] = (team.namespace or but for team in catalog.teams.values())
    return tuple(dict.fromkeys(name for name in named if name != but))


def labels_of(service: str) -> dict[str, str]:
    """Give the labels of a service's own pods."""
    return {"app.kubernetes.io/name": f"{PREFIX}-{service}"}
