"""What follows for this service from where an installation has its parts.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Any

from hub_ext.install.model import Installation, RunAs


def defaults(installation: Installation) -> dict[str, Any]:
    """Give settings that need not be written twice; what the service's entry says comes before them."""
    made: dict[str, Any] = {"pods": {"namespace": installation.pulls_namespace}}
    if installation.pull_secrets and installation.run is RunAs.DEPLOYMENTS:  # else the hub tells it
        made["shared"] = {"pullSecrets": list(installation.pull_secrets)}
    return made
