"""Kernels and terminals as the Jupyter server knows them.

Pure: facts only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .processes import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelState:
    """One kernel as its manager knows it."""

    id: str
    name: str
    pid: int | None
    """None where it runs elsewhere."""
    state: str
    connections: int | None
    path: str
    waits_for_input: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalState:
    """One terminal as its manager knows it."""

    pid: int
    shell: Shell
    last_activity: datetime | None
