"""``python -m services.idle_culler``."""

from ..base import main
from .app import IdleCuller

raise SystemExit(main(IdleCuller))
