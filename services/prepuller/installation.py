"""What follows for this service from where an installation has its parts.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Any

from hub_ext.install.model import Installation


def defaults(installation: Installation) -> dict[str, Any]:
    """Give settings that need not be written twice; what the service's entry says comes before them."""
    return {"pods": {"namespace": installation.pulls_namespace}}
