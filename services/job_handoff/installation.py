"""What `gpu-workspaces manifests` prints for this service beside its account and roles.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .manifest.place import build_place
from .settings import HandoffSettings


def manifests(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Build the namespace of runs with the rules that hold in it; `settings` as in the service's file."""
    whole = {"catalog": "catalog.yaml", **settings}
    return build_place(HandoffSettings.model_validate(whole, by_alias=True, by_name=False))
