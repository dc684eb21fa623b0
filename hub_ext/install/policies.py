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


def _service_policy(installation: Installation, name: str, rights: Rights) -> dict[str, Any]:
    ingress = [from_pods(PROXY, SERVICE_PORT), from_pods(HUB, SERVICE_PORT)]
    if "server" in rights.opened_by:
        namespaces = installation.team_namespaces or (installation.hub_namespace,)
        ingress += [from_pods(USERS, SERVICE_PORT, namespace=one) for one in namespaces]
    if name == "job-handoff":
        ingress.append(from_pods({}, SERVICE_PORT, namespace=installation.jobs_namespace))
    egress = [to_names(), to_pods(HUB, HUB_PORT), to_api_server()]
    if installation.monitoring_namespace:
        ingress.append(from_pods({}, SERVICE_PORT, namespace=installation.monitoring_namespace))
        egress.append(to_pods({}, namespace=installation.monitoring_namespace))
    return build_policy(
        f"{PREFIX}-{name}", installation.hub_namespace, pods=labels_of(name), ingress=ingress, egress=egress
    )
