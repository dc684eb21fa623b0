"""The network policies of an installation.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..render.rights import PREFIX
from ..rights import Rights
from .model import Installation, RunAs, labels_of
from .network import (
    HUB,
    HUB_PORT,
    PROXY,
    SERVICE_PORT,
    USER_PORT,
    USERS,
    build_policy,
    from_pods,
    to_api_server,
    to_names,
    to_pods,
    to_public,
)

RUNS = "job-handoff"
"""The service whose runs speak to it."""
PULLS = "prepuller"
OUTSIDE = frozenset({"gitHosts", "notify", "store"})
"""Settings by which a service has business at public addresses."""
PROMETHEUS = "prometheus"
"""The setting of a service that asks Prometheus."""

Known = Mapping[str, tuple[str, Rights]]
"""Package and rights of each service."""


def build_policies(installation: Installation, rights: Known) -> Iterator[dict[str, Any]]:
    """Build all of them; what a policy does not name, it denies."""
    names = sorted(installation.services)
    if PULLS in names:  # its pods speak to nobody: kubelets pull
        yield build_policy(f"{PREFIX}-pulls", installation.pulls_namespace, pods={})
    if RUNS in names:
        yield _runs_policy(installation)
    for namespace in installation.team_namespaces:
        yield _team_policy(installation, rights, namespace)
    if installation.run is RunAs.DEPLOYMENTS:
        for name in names:
            yield _service_policy(installation, name, rights[name][1])


def _runs_policy(installation: Installation) -> dict[str, Any]:
    """Let runs reach the service that they report to, beside what its settings allow them."""
    hub = installation.hub_namespace
    service = to_pods(installation.pods_of(RUNS), installation.port_of(RUNS), namespace=hub)
    names = to_names(installation.name_servers)
    return build_policy(f"{PREFIX}-runs", installation.jobs_namespace, pods={}, egress=[names, service])


def _team_policy(installation: Installation, rights: Known, namespace: str) -> dict[str, Any]:
    """Build what the chart has for workspaces in the hub's namespace."""
    hub = installation.hub_namespace
    return build_policy(
        f"{PREFIX}-workspaces",
        namespace,
        pods=USERS,
        ingress=[from_pods(pods, USER_PORT, namespace=hub) for pods in (HUB, PROXY)],
        egress=[
            to_names(installation.name_servers),
            to_pods(HUB, HUB_PORT, namespace=hub),
            *to_services(installation, rights, namespace=hub),
            to_web(installation),
        ],
    )


def to_services(installation: Installation, rights: Known, *, namespace: str = "") -> list[dict[str, Any]]:
    """Build the rules that let workspaces reach the services that they use."""
    return [
        to_pods(installation.pods_of(name), installation.port_of(name), namespace=namespace)
        for name in sorted(installation.services)
        if "server" in rights[name][1].opened_by
    ]


def to_web(installation: Installation) -> dict[str, Any]:
    """Build the rule for public HTTPS, where no API server is."""
    return to_public(443, but=installation.api_server.addresses)


def to_workspaces(installation: Installation) -> list[dict[str, Any]]:
    """Build the rules that let hub and proxy reach workspaces where the chart's own do not."""
    return [to_pods(USERS, USER_PORT, namespace=one) for one in installation.team_namespaces]


def callers(installation: Installation, name: str, rights: Rights) -> list[dict[str, Any]]:
    """Build the rules that let in whoever has business with a service, wherever it runs.

    The hub itself is not among them: beside a service of its own pod it needs no rule.
    """
    port = installation.port_of(name)
    made = [from_pods(PROXY, port)]
    if "server" in rights.opened_by:
        made += [from_pods(USERS, port, namespace=one) for one in installation.places.of_workspaces]
    if name == RUNS:
        made.append(from_pods({}, port, namespace=installation.jobs_namespace))
    if installation.monitoring_namespace:
        made.append(from_pods({}, port, namespace=installation.monitoring_namespace))
    return made


def hub_callers(installation: Installation) -> list[dict[str, Any]]:
    """Build the rules that let in at the hub's API, from other namespaces, who has business there."""
    made = [from_pods(USERS, HUB_PORT, namespace=one) for one in installation.team_namespaces]
    if installation.monitoring_namespace:
        made.append(from_pods({}, HUB_PORT, namespace=installation.monitoring_namespace))
    return made


def _service_policy(installation: Installation, name: str, rights: Rights) -> dict[str, Any]:
    entry, api = installation.services[name], installation.api_server
    ingress = [from_pods(HUB, SERVICE_PORT), *callers(installation, name, rights)]
    egress = [
        to_names(installation.name_servers),
        to_pods(HUB, HUB_PORT),
        to_api_server(api.addresses, api.ports),
        *entry.egress,
    ]
    if api.addresses and entry.settings.keys() & OUTSIDE:
        egress.append(to_web(installation))
    if installation.monitoring_namespace and PROMETHEUS in entry.settings:
        egress.append(to_pods({}, namespace=installation.monitoring_namespace))
    return build_policy(
        f"{PREFIX}-{name}", installation.hub_namespace, pods=labels_of(name), ingress=ingress, egress=egress
    )
