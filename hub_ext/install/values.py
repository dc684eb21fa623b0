"""The chart's values about services: the hub's list, roles, and who may reach whom.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from typing import Any

from ..importer.values import helm_merge
from ..managed import CATALOG, CHART_VALUES, SETTINGS, hub_roles, variable_of
from .model import Installation, RunAs
from .network import HUB, HUB_PORT, to_all_but_metadata, to_api_server, to_names, to_pods
from .policies import Known, callers, hub_callers, to_services, to_web, to_workspaces


def build_values(installation: Installation, rights: Known) -> dict[str, Any]:
    """Build the chart's values about services: the hub's list, roles, and who may reach whom.

    Parameters
    ----------
    rights
        Package and rights of each service.
    """
    names = sorted(installation.services)
    told = [name for name in names if "server" in rights[name][1].opened_by]
    roles = hub_roles(rights[name][1] for name in names)
    values: dict[str, Any] = {
        "hub": {
            "services": {name: _hub_entry(installation, name, rights[name][0]) for name in names},
            "loadRoles": {role["name"]: {k: v for k, v in role.items() if k != "name"} for role in roles},
        },
        "singleuser": {
            "extraEnv": {variable_of(name): installation.home_of(name) for name in told},
            "networkPolicy": {
                "egress": [*_names(installation), *to_services(installation, rights), to_web(installation)]
            },
        },
    }
    if installation.pull_secrets:
        values["imagePullSecrets"] = [{"name": name} for name in installation.pull_secrets]
    for more in (_network(installation, rights), _address(installation)):
        values = helm_merge(values, more)
    return values


def _address(installation: Installation) -> dict[str, Any]:
    """Build what says where the hub is."""
    hub: dict[str, Any] = {} if installation.base_url == "/" else {"baseUrl": installation.base_url}
    if installation.team_namespaces:  # where the hub's short name is nobody's
        url = f"http://hub.{installation.hub_namespace}.svc:{HUB_PORT}"
        hub["config"] = {"JupyterHub": {"hub_connect_url": url}}
    return {"hub": hub}


def _network(installation: Installation, rights: Known) -> dict[str, Any]:
    """Build what hub and proxy may reach, and who may reach the hub, beside the chart's own rules."""
    ports = {name: installation.port_of(name) for name in sorted(installation.services)}
    ingress = hub_callers(installation)
    hub: dict[str, Any] = {}
    if installation.run is RunAs.IN_HUB:
        hub["service"] = {
            "extraPorts": [{"name": name, "port": port, "targetPort": port} for name, port in ports.items()]
        }
        ingress += [rule for name in ports for rule in callers(installation, name, rights[name][1])]
        services = [to_pods(HUB, *ports.values())] if ports else []  # no port would be every port
    else:
        services = [to_pods(installation.pods_of(name), port) for name, port in ports.items()]
    names, workspaces = _names(installation), to_workspaces(installation)
    api = to_api_server(installation.api_server.addresses, installation.api_server.ports)
    egress = [] if installation.run is RunAs.IN_HUB else services
    # The hub needs the provider of sign-in and a database, wherever those are. Pods and API server are named
    # beside that: to some network plugins they are at no address.
    hub["networkPolicy"] = {
        "ingress": ingress,
        "egress": [*names, api, *egress, *workspaces, to_all_but_metadata()],
    }
    return {
        "hub": hub,
        "proxy": {"chp": {"networkPolicy": {"egress": [*names, *services, *workspaces]}}},
    }


def _names(installation: Installation) -> list[dict[str, Any]]:
    """Build the rule for names that are resolved where the chart does not expect it."""
    return [to_names(installation.name_servers)] if installation.name_servers else []


def _hub_entry(installation: Installation, name: str, package: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"url": installation.url_of(name), "oauth_no_confirm": True}
    if installation.run is RunAs.DEPLOYMENTS:
        return entry  # the chart makes its token, and its Deployment reads it
    settings = installation.services[name].settings
    return entry | {
        "command": ["python3", "-m", package],
        "environment": {
            SETTINGS: json.dumps(settings),
            CATALOG: CHART_VALUES,
            # A hub passes on no variables of its pod; by its name the API server is always to be found.
            "KUBERNETES_SERVICE_HOST": "kubernetes.default.svc",
            "KUBERNETES_SERVICE_PORT": "443",
        },
    }
