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


def build_policies(
    installation: Installation, rights: Mapping[str, tuple[str, Rights]]
) -> Iterator[dict[str, Any]]:
    """Build all of them; what a policy does not name, it denies."""
    names = sorted(installation.services)
    deployed = installation.run is RunAs.DEPLOYMENTS
    if "prepuller" in names:  # its pods speak to nobody: kubelets pull
        yield build_policy(f"{PREFIX}-pulls", installation.pulls_namespace, pods={})
    for namespace in installation.team_namespaces:
        yield _team_policy(installation, rights, namespace)
    if deployed:
        for name in names:
            yield _service_policy(installation, name, rights[name][1])


def _team_policy(
    installation: Installation, rights: Mapping[str, tuple[str, Rights]], namespace: str
) -> dict[str, Any]:
    """Build what the chart has for workspaces in the hub's namespace."""
    hub = installation.hub_namespace
    services = [
        to_pods(
            labels_of(name) if installation.run is RunAs.DEPLOYMENTS else HUB,
            installation.port_of(name),
            namespace=hub,
        )
        for name in sorted(installation.services)
        if "server" in rights[name][1].opened_by
    ]
    return build_policy(
        f"{PREFIX}-workspaces",
        namespace,
        pods=USERS,
        ingress=[from_pods(pods, USER_PORT, namespace=hub) for pods in (HUB, PROXY)],
        egress=[to_names(), to_pods(HUB, HUB_PORT, namespace=hub), *services, to_public(443)],
    )


def callers(installation: Installation, name: str, rights: Rights) -> list[dict[str, Any]]:
    """Build the rules that let in whoever has business with a service, wherever it runs.

    The hub itself is not among them: beside a service of its own pod it needs no rule.
    """
    port = installation.port_of(name)
    made = [from_pods(PROXY, port)]
    if "server" in rights.opened_by:
        made += [from_pods(USERS, port, namespace=one) for one in installation.places.of_workspaces]
    if name == "job-handoff":
        made.append(from_pods({}, port, namespace=installation.jobs_namespace))
    if installation.monitoring_namespace:
        made.append(from_pods({}, port, namespace=installation.monitoring_namespace))
    return made


def _service_policy(installation: Installation, name: str, rights: Rights) -> dict[str, Any]:
    ingress = [from_pods(HUB, SERVICE_PORT), *callers(installation, name, rights)]
    egress = [to_names(), to_pods(HUB, HUB_PORT), to_api_server()]
    if installation.monitoring_namespace:
        egress.append(to_pods({}, namespace=installation.monitoring_namespace))
    return build_policy(
        f"{PREFIX}-{name}", installation.hub_namespace, pods=labels_of(name), ingress=ingress, egress=egress
    )
