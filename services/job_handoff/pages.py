"""Pages (placeholder until templates land)."""

from __future__ import annotations

from typing import Any

PAGES: tuple[tuple[str, Any, dict[str, Any]], ...] = ()
