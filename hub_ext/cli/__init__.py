"""`gpu-workspaces`: every judgement the product makes, asked offline.

Each verb is a module with `HELP`, `configure(parser)` and `run(args) -> Report`. `app` finds the module of
a verb, prints what it reports and turns it into an exit status.
"""

from .app import main

__all__ = ["main"]
