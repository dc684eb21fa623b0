"""What `gpu-workspaces manifests` prints for this service beside its account and roles, and its settings that
follow from where an installation has its parts.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hub_ext.install.model import Installation

from .manifest.place import build_place
from .rights import RIGHTS
from .settings import HandoffSettings


def defaults(installation: Installation) -> dict[str, Any]:
    """Give settings that need not be written twice; what the service's entry says comes before them."""
    return {
        "namespace": installation.jobs_namespace,
        "serverNamespaces": list(installation.places.of_workspaces),
        "runner": {"url": installation.home_of(RIGHTS.name)},
    }


def manifests(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Build the namespace of runs with the rules that hold in it; `settings` as in the service's file."""
    whole = {"catalog": "catalog.yaml", **settings}
    return build_place(HandoffSettings.model_validate(whole, by_alias=True, by_name=False))
