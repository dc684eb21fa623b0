"""`python -m services.prepuller --config FILE`."""

from __future__ import annotations

from ..base import main
from .app import PrepullerService

if __name__ == "__main__":
    raise SystemExit(main(PrepullerService))
