"""``python -m services.idle_culler``."""

import gc

from ..base import main
from .app import COLLECT, IdleCuller

gc.set_threshold(*COLLECT)
raise SystemExit(main(IdleCuller))
