"""What every object of a run needs to know about the place where it runs.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..settings import HandoffSettings

SOURCE_FILE = "source.tar.gz"
RUNNER_FOLDER = "/opt/handoff"
SOURCE_FOLDER = "/opt/handoff-source"
WORK_FOLDER = "/workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Facts that hold for one submission."""

    settings: HandoffSettings
    runner_map: str
    """Name of the ConfigMap with the program that runs in the pods."""
    token: str = field(repr=False)
    """With which the run's pods speak to the service."""
    submitted: datetime
    source_map: str = ""
    """Name of the ConfigMap with the source; empty where it is fetched."""
    home: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    """Volume and mount of the user's home, where it is the source."""

    @property
    def namespace(self) -> str:
        return self.settings.namespace
