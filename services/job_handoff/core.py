"""What all parts of the service share: the cluster, the store, the hub, the catalog, the clock.

Shell: reads files and the clock.
"""

from __future__ import annotations

import hmac
import json
import logging
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
from .store import Store, StoreError

audit_log = logging.getLogger("gpu_workspaces.audit")
log = logging.getLogger(__name__)

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
        """Note who did what with a run; the log has it in any case, the store where it answers."""
        source = record.request.get("source") or {}
        entry = {
            "event": event,
            "time": self.now().isoformat(timespec="seconds"),
            "actor": actor,
            "user": record.user,
            "run": record.id,
            "team": record.team,
            "kind": record.kind,
            "profile": record.profile,
            "image": record.image,
            "source": dict(source),
            "entry": str((record.request.get("entry") or {}).get("path", "")),
            **(more or {}),
        }
        text = json.dumps(entry, ensure_ascii=True)
        audit_log.info("run %s: %s", event, text)
        try:
            await self.store.put(places.audit_path(self.now().date(), f"{record.id}-{event}"), text.encode())
        except StoreError as error:
            log.warning("audit entry not stored: run=%s error=%s", record.id, error)
