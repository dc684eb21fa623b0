"""The launch checklist: every check, in the order in which it is told."""

from __future__ import annotations

from ..problems import Check
from .gpus import CHECKS as GPUS
from .hub import CHECKS as HUB
from .monitoring import CHECKS as MONITORING
from .network import CHECKS as NETWORK
from .nodes import CHECKS as NODES
from .queues import CHECKS as QUEUES
from .quotas import CHECKS as QUOTAS
from .rights import CHECKS as RIGHTS
from .security import CHECKS as SECURITY
from .storage import CHECKS as STORAGE
from .trials import CHECKS as TRIALS
from .upgrade import CHECKS as UPGRADE
from .values import CHECKS as VALUES
from .workspaces import CHECKS as WORKSPACES
from .written import CHECKS as WRITTEN

CHECKS: tuple[Check, ...] = (
    *NODES,
    *GPUS,
    *MONITORING,
    *STORAGE,
    *QUOTAS,
    *QUEUES,
    *TRIALS,
    *SECURITY,
    *WORKSPACES,
    *NETWORK,
    *RIGHTS,
    *VALUES,
    *WRITTEN,
    *HUB,
    *UPGRADE,
)
