"""What all parts of the service share: the cluster, the store, the hub, the catalog, the clock.

Shell: reads files and the clock.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hub_ext.catalog.model import Catalog
from hub_ext.quota.demand import Weights, weights_of
from hub_ext.selection_access import Person, teams_of
from services.base import CatalogFile
from services.hub import Hub
from services.kube import Kube

from . import places
from .census import Census
from .cluster import Cluster
from .ids import NO_TEAM
from .kept import Kept
from .metrics import Metrics
from .record import Record, parse_record
from .settings import HandoffSettings
from .store import Store
from .trail import Trail

RUNNER: Final = Path(__file__).parent / "runner"


def read_runner() -> dict[str, str]:
    """Read the program that runs in the pods, file by file."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(RUNNER.glob("*.py"))}


def runner_secret(settings: HandoffSettings, token: str) -> bytes:
    """Give the secret for tokens of runs; without a file, made from the service's own token."""
    if settings.runner.secret_file is not None:
        return settings.runner.secret_file.read_bytes().strip()
    return hmac.digest(token.encode(), b"job-handoff run tokens", "sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Everything that is shared."""

    settings: HandoffSettings
    kube: Kube
    cluster: Cluster
    store: Store
    hub: Hub
    catalogs: CatalogFile
    census: Census
    kept: Kept
    metrics: Metrics
    trail: Trail
    secret: bytes

    async def catalog(self) -> tuple[Catalog, Weights]:
        """Give the catalog as it is now, and what its devices are worth."""
        catalog = await self.catalogs.current()
        return catalog, weights_of(catalog)

    def now(self) -> datetime:
        """Read the clock."""
        return datetime.now(UTC)

    async def stored_record(self, catalog: Catalog, person: Person, run: str) -> Record | None:
        """Find the record of a user's run that has been filed."""
        for team in (*teams_of(catalog, person), NO_TEAM):
            content = await self.store.get(places.record_path(team, person.name, run))
            if content is not None:
                return parse_record(content.decode())
        return None

    async def audit(
        self, event: str, record: Record, *, actor: str, more: Mapping[str, Any] | None = None
    ) -> None:
        """Note who did what with a run."""
        await self.trail.note(event, record, actor=actor, now=self.now(), more=more)
