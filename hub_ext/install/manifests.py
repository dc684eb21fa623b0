"""Everything that the chart does not bring, as manifests.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ..render.rights import PREFIX, build_rights
from ..render.target import MANAGED_BY
from ..rights import HUB, Rights
from .deployment import build_deployment, build_service
from .model import Installation, RunAs, labels_of
from .network import USERS
from .policies import build_policies

INTERACTIVE: Final = "gpu-workspaces-interactive"
BATCH: Final = "gpu-workspaces-batch"


def build_manifests(
    installation: Installation,
    rights: Mapping[str, tuple[str, Rights]],
    *,
    catalog: str,
    own: Mapping[str, list[dict[str, Any]]] | None = None,
) -> list[dict[str, Any]]:
    """Build everything that the chart does not bring, in the order in which it can be applied.

    Parameters
    ----------
    catalog
        Text of the catalog, for services that have pods of their own.
    own
        What services bring themselves, by their names, such as the namespace of runs and its rules.
    """
    places, names = installation.places, sorted(installation.services)
    account = "hub" if installation.run is RunAs.IN_HUB else ""
    brought = [document for name in names for document in (own or {}).get(name, ())]
    made = [build_namespace(name) for name in _namespaces(installation)]
    made += [document for document in brought if document["kind"] == "Namespace"]
    made += [document for document in brought if document["kind"] != "Namespace"]
    made += [
        build_priority(INTERACTIVE, 1000, "Workspaces that people wait for."),
        build_priority(BATCH, 100, "Runs: they wait, and take no place away from workspaces."),
    ]
    made += build_rights(HUB, places)
    for name in names:
        made += build_rights(rights[name][1], places, account=account)
    made += [build_budget(name) for name in places.of_workspaces]
    made += build_policies(installation, rights)
    if installation.run is RunAs.DEPLOYMENTS:
        made.append(_config_map(f"{PREFIX}-catalog", installation, {"catalog.yaml": catalog}))
        for name in names:
            made += _deployed(installation, name, rights[name][0])
    return made


def _namespaces(installation: Installation) -> tuple[str, ...]:
    """Name the namespaces that are wanted; the hub's is the chart's, that of runs the service's own."""
    pulls = (installation.pulls_namespace,) if "prepuller" in installation.services else ()
    return (*installation.team_namespaces, *pulls)


def build_namespace(name: str) -> dict[str, Any]:
    """Build a namespace that takes no pod with rights over its node."""
    level = "pod-security.kubernetes.io"
    labels = {f"{level}/enforce": "restricted", f"{level}/warn": "restricted", **MANAGED_BY}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def build_priority(name: str, value: int, description: str) -> dict[str, Any]:
    """Build a PriorityClass that ends nobody else's pods: what runs is somebody's work."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": dict(MANAGED_BY)},
        "value": value,
        "preemptionPolicy": "Never",
        "description": description,
    }


def build_budget(namespace: str) -> dict[str, Any]:
    """Build a PodDisruptionBudget: a drain waits for workspaces instead of ending them."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{PREFIX}-workspaces", "namespace": namespace, "labels": dict(MANAGED_BY)},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": USERS}},
    }


def _config_map(name: str, installation: Installation, data: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": installation.hub_namespace, "labels": dict(MANAGED_BY)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _deployed(installation: Installation, name: str, package: str) -> list[dict[str, Any]]:
    entry = installation.services[name]
    settings = json.dumps(entry.settings, indent=2)
    made = [_config_map(f"{PREFIX}-{name}", installation, {"settings.yaml": settings + "\n"})]
    made += build_deployment(installation, name, package)
    return [*made, build_service(name, namespace=installation.hub_namespace, labels=labels_of(name))]
