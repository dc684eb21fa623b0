"""The chart's values about services: the hub's list, roles, and who may reach whom.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..managed import CATALOG, CHART_VALUES, SETTINGS, hub_roles, variable_of
from ..rights import Rights
from .model import Installation, RunAs, labels_of
from .network import HUB, SERVICE_PORT, to_pods, to_public
from .policies import callers


def build_values(installation: Installation, rights: Mapping[str, tuple[str, Rights]]) -> dict[str, Any]:
    """Build the chart's values about services: the hub's list, roles, and who may reach whom.

    Parameters
    ----------
    rights
        Package and rights of each service.
    """
    names = sorted(installation.services)
    ports = [installation.port_of(name) for name in names]
    services = {name: _hub_entry(installation, name, rights[name][0]) for name in names}
    opened = [name for name in names if "user" in rights[name][1].opened_by]
    told = [name for name in names if "server" in rights[name][1].opened_by]
    roles = hub_roles(rights[name][1] for name in names)
    prefix = {name: f"{installation.url_of(name)}/services/{name}/" for name in told}
    values: dict[str, Any] = {
        "hub": {
            "services": services,
            "loadRoles": {role["name"]: {k: v for k, v in role.items() if k != "name"} for role in roles},
        },
        "singleuser": {"extraEnv": {variable_of(name): prefix[name] for name in told}},
    }
    if installation.run is RunAs.DEPLOYMENTS:
        egress = [*(to_pods(labels_of(name), SERVICE_PORT) for name in told), to_public(443)]
        values["singleuser"]["networkPolicy"] = {"egress": egress}
        values["proxy"] = {
            "chp": {"networkPolicy": {"egress": [to_pods(labels_of(name), SERVICE_PORT) for name in opened]}}
        }
        return values
    values["hub"]["service"] = {
        "extraPorts": [
            {"name": name, "port": port, "targetPort": port} for name, port in zip(names, ports, strict=True)
        ]
    }
    user_ports = [installation.port_of(name) for name in told]
    values["hub"]["networkPolicy"] = {
        "ingress": [rule for name in names for rule in callers(installation, name, rights[name][1])]
    }
    to_services = [to_pods(HUB, *user_ports)] if user_ports else []
    values["singleuser"]["networkPolicy"] = {"egress": [*to_services, to_public(443)]}
    values["proxy"] = {"chp": {"networkPolicy": {"egress": [to_pods(HUB, *ports)]}}}
    return values


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
