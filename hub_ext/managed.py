"""Services as processes of the hub: what the hub is told about them, made from what they declare.

Shell: imports the packages of services, reads the environment.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Any, Final

from .errors import CatalogError, Finding, Severity
from .rights import Rights
from .shared import shared_by_workspaces

GROUP: Final = "gpu_workspaces.services"
"""Entry points: the name of a service and its Python package, which has `rights.RIGHTS` and a `__main__`."""
PREPULLER: Final = "prepuller"
SETTINGS: Final = "GPU_WORKSPACES_SETTINGS"
"""Environment variable with the settings of a service as JSON, where it has no file."""
CATALOG: Final = "GPU_WORKSPACES_CATALOG"
"""Environment variable with the path of the catalog, for a service whose settings do not say it."""
CHART_VALUES: Final = "/usr/local/etc/jupyterhub/secret/values.yaml"
"""Where the chart's hub has its values and with them the catalog, for services that run beside it."""
DEFAULTS: Final = {
    "user": ("self",),
    "server": ("users:activity!user", "access:servers!server"),
}
"""Scopes of the hub's own roles, which have to be repeated when one is added."""


INHERITED: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBECONFIG")
"""Variables that say where the cluster is; the hub passes them on to no service by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """One service that the hub runs."""

    name: str
    """Of its entry point: ``idle-culler``, ``prepuller``, ``job-handoff``."""
    url: str
    """Where it listens, and where proxy and pods reach it: ``http://hub:10101``."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those that the hub sets, such as `KUBECONFIG`."""


def known() -> tuple[str, ...]:
    """Give the names of all services that installed packages have."""
    return tuple(sorted(entry.name for entry in entry_points(group=GROUP)))


def declared(name: str) -> tuple[str, Rights]:
    """Give the Python package of a service and its rights.

    Raises
    ------
    CatalogError
        No installed package has a service of that name.
    """
    found = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    if name not in found:
        finding = Finding(
            severity=Severity.ERROR,
            code="unknown-service",
            message=f"there is no service {name!r}",
            help=f"Services are {', '.join(sorted(found))}.",
        )
        raise CatalogError([finding])
    rights: Rights = importlib.import_module(f"{found[name]}.rights").RIGHTS
    return found[name], rights


def run_services(c: Any, services: Iterable[Managed], *, catalog: str, base_url: str = "/") -> None:
    """Tell a hub's configuration about services that it runs: they, their rights, and who may use them.

    Parameters
    ----------
    catalog
        Path of the catalog.
    base_url
        The hub's `base_url`.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    known = [(service, *declared(service.name)) for service in services]
    made = []
    for service, package, rights in known:
        complete = replace(service, environment={**inherited, **service.environment})
        entry = hub_service(complete, package, catalog=catalog)
        if service.name == PREPULLER:
            entry["api_token"] = secrets.token_hex(32)
        if "server" in rights.opened_by:
            # Of the last class: what is set for the classes before it stays.
            told = {variable_of(service.name): _address(entry, base_url)}
            c.WorkspaceSpawner.environment.update(told)
        made.append(entry)
    listed = c.JupyterHub.services  # no list yet where nobody has set one
    entries = [*(listed if isinstance(listed, list) else ()), *made]
    _ask_prepuller(c, entries, base_url)
    _tell_prepuller(c, entries)
    c.JupyterHub.services.extend(made)
    for role in hub_roles(rights for _, _, rights in known):
        c.JupyterHub.load_roles.append(role)


def _ask_prepuller(c: Any, entries: Iterable[Mapping[str, Any]], base_url: str) -> None:
    """Let the hub ask the prepuller what is warm, with the service's own token, whoever made it."""
    for entry in entries:
        if entry.get("name") == PREPULLER and entry.get("url") and entry.get("api_token"):
            c.WorkspaceSpawner.prepuller_url = _address(entry, base_url)
            c.WorkspaceSpawner.prepuller_token = entry["api_token"]


def _tell_prepuller(c: Any, entries: Iterable[Mapping[str, Any]]) -> None:
    """Tell a prepuller that the hub runs what all workspaces have; what its settings say stays."""
    for entry in entries:
        environment = entry.get("environment")
        if entry.get("name") != PREPULLER or not isinstance(environment, dict) or SETTINGS not in environment:
            continue
        try:
            settings = json.loads(environment[SETTINGS])
            settings["shared"] = shared_by_workspaces(c) | settings.get("shared", {})
        except (ValueError, TypeError, AttributeError):
            continue  # not as this bundle writes it: the service reads it, or says what is wrong with it
        environment[SETTINGS] = json.dumps(settings)


def _address(entry: Mapping[str, Any], base_url: str) -> str:
    return f"{entry['url'].rstrip('/')}{base_url.rstrip('/')}/services/{entry['name']}/"


def hub_service(service: Managed, package: str, *, catalog: str) -> dict[str, Any]:
    """Build the hub's entry of a service, for `JupyterHub.services`."""
    return {
        "name": service.name,
        "url": service.url,
        "command": [sys.executable, "-m", package],
        "environment": {SETTINGS: json.dumps(service.settings), CATALOG: catalog, **service.environment},
        # A part of this hub, which an admin installed: nobody is asked whether it may know who they are.
        "oauth_no_confirm": True,
    }


def hub_roles(all_rights: Iterable[Rights]) -> list[dict[str, Any]]:
    """Build the hub's roles of services and of those who use them, for `JupyterHub.load_roles`."""
    all_rights = tuple(all_rights)
    roles: list[dict[str, Any]] = [
        {
            "name": f"gpu-workspaces-{rights.name}",
            "scopes": [scope.name for scope in rights.scopes],
            "services": [rights.name],
        }
        for rights in all_rights
        if rights.scopes
    ]
    for role, defaults in DEFAULTS.items():
        opened = [f"access:services!service={r.name}" for r in all_rights if role in r.opened_by]
        if opened:
            roles.append({"name": role, "scopes": [*defaults, *opened]})
    return roles


def variable_of(service: str) -> str:
    """Say in which variable a workspace finds the address of a service."""
    return f"GPU_WORKSPACES_{service.rpartition('-')[2].upper()}_URL"
