"""What follows for this service from where an installation has its parts.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Any

from hub_ext.install.model import Installation

HANDOFF = "job-handoff"


def defaults(installation: Installation) -> dict[str, Any]:
    """Give settings that need not be written twice; what the service's entry says comes before them."""
    handoff = {"handoff": installation.prefix_of(HANDOFF)} if HANDOFF in installation.services else {}
    return {"namespace": list(installation.places.of_workspaces), **handoff}
