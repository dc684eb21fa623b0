"""Where the catalog of a hub comes from, and the one call for `jupyterhub_config.py`.

Shell: reads the catalog's files, or the values of the Zero-to-JupyterHub chart.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, Final

from traitlets.config import Application, Config

from .catalog.load import load_catalog
from .catalog.model import Catalog
from .errors import CatalogError, Finding, Severity
from .managed import CHART_VALUES, Managed, run_services

SPAWNER: Final = "hub_ext.WorkspaceSpawner"
"""Not by the name of its module: so `check_hub` is asked whether the hub may start."""

VALUES_KEY: Final = "custom.gpuWorkspaces"
"""Where the chart's values hold the catalog; `custom` is the only free place in them."""


OWN_NAMESPACES: Final = (
    "enable_user_namespaces is not supported: limits, waits and what is free are read from the namespaces of "
    "the hub and of the teams. Leave it off; a team gets a namespace of its own by teams.<team>.namespace in "
    "the catalog."
)

API: Final = (r"/api/users/([^/]+)/workspaces", "hub_ext.form.handlers.WorkspacesHandler")
"""The page's facts for programs, as the hub takes handlers."""

TEMPLATES: Final = str(Path(__file__).parent / "form" / "templates")
"""Pages of the hub in words for workspaces; without them the hub's own show the same texts."""


def configure(
    c: Any,
    *,
    catalog: str | PathLike[str] | Mapping[str, Any] | None = None,
    services: Iterable[Managed] = (),
) -> None:
    """Make a hub offer the workspaces of a catalog, with its pages and its interface for programs.

    In `jupyterhub_config.py`::

        from hub_ext import configure

        configure(c, catalog="/etc/jupyterhub/catalog.yaml")

    Parameters
    ----------
    c
        The hub's configuration object.
    catalog
        A file, a folder of files, or the catalog itself; left out, it is in the values of the chart.
    services
        Services of the bundle that the hub runs. They add to `services` and `load_roles`: set those before.

    Raises
    ------
    SystemExit
        The catalog has errors: the hub does not start, and all of them are printed.
    """
    if catalog is None:
        catalog_or_exit(chart_catalog())
    else:
        source = dict(catalog) if isinstance(catalog, Mapping) else str(Path(catalog).absolute())
        catalog_or_exit(source)
        c.WorkspaceSpawner.catalog = source
    c.JupyterHub.spawner_class = SPAWNER
    c.JupyterHub.extra_handlers.append(API)
    paths = c.JupyterHub.template_paths
    if isinstance(paths, list):
        paths.append(TEMPLATES)  # an admin's own pages come first
    else:
        paths.prepend([TEMPLATES])  # nothing is set yet: before the hub's own
    services = tuple(services)
    run_services(c, services, catalog=_catalog_path(catalog) if services else "", base_url=_base_url(c))


def _catalog_path(catalog: str | PathLike[str] | Mapping[str, Any] | None) -> str:
    """Give a path of the catalog for services: one that is given as such is written down for them."""
    if catalog is None:
        return CHART_VALUES
    if not isinstance(catalog, Mapping):
        return str(Path(catalog).absolute())
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="gpu-workspaces-", delete=False) as file:
        json.dump(catalog, file, default=str)
    return file.name


def _base_url(c: Any) -> str:
    found = c.JupyterHub.base_url
    return found if isinstance(found, str) else "/"


def catalog_or_exit(source: str | Mapping[str, Any]) -> Catalog:
    """Give the catalog, or end the process with everything that is wrong with it."""
    try:
        return catalog_from(source)
    except CatalogError as error:
        raise SystemExit(f"The hub does not start: {error}") from None


def check_hub() -> None:
    """End the process where the hub's configuration is one that this project cannot serve.

    The hub asks for the spawner's class while it takes over its configuration; that is the last moment before
    the first visitor at which a mistake can still keep it from starting.
    """
    if "z2jh" in sys.modules and (found := chart_catalog()):
        catalog_or_exit(found)
    with suppress(RuntimeError):  # no hub, but a command that needs the class
        asyncio.get_running_loop().call_soon(check_settings)


def check_settings() -> None:
    """End the process if the hub has settings that would have no effect, once they are all known."""
    config = Application.instance().config if Application.initialized() else Config()
    for section in ("KubeSpawner", "WorkspaceSpawner"):
        if config[section].get("enable_user_namespaces"):
            raise SystemExit(f"The hub does not start: {section}.{OWN_NAMESPACES}")


def catalog_from(source: str | Mapping[str, Any]) -> Catalog:
    """Load a catalog, once per process for each source; a changed file counts after a restart of the hub.

    Raises
    ------
    CatalogError
        No source is given, or the catalog is wrong.
    """
    if not source:
        finding = Finding(
            severity=Severity.ERROR,
            code="no-catalog",
            message="no catalog is configured",
            help=f"Set {VALUES_KEY} in the chart's values, or call hub_ext.configure(c, catalog=...).",
        )
        raise CatalogError([finding])
    if isinstance(source, str):
        return _load_path(source)
    if not _latest or _latest[0][0] is not source:
        # Writing out a large catalog takes milliseconds, and the chart's is the same object for all spawners.
        _latest[:] = [(source, _load_text(json.dumps(source, sort_keys=True, default=str)))]
    return _latest[0][1]


_latest: Final[list[tuple[Mapping[str, Any], Catalog]]] = []


@cache
def _load_path(path: str) -> Catalog:
    return load_catalog(Path(path))


@cache
def _load_text(text: str) -> Catalog:
    return load_catalog(json.loads(text))


def chart_catalog() -> Mapping[str, Any]:
    """Give the catalog in the values of the chart; empty where the hub does not run in one.

    The chart puts its module `z2jh` on the path of the hub's configuration.
    """
    try:
        from z2jh import get_config  # type: ignore[import-not-found]  # noqa: PLC0415 - in the chart's hub only
    except ImportError:
        return {}
    found: Mapping[str, Any] = get_config(VALUES_KEY) or {}
    return found
