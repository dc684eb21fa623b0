"""configurable-http-proxy, the proxy that JupyterHub ships with its chart.

Shell: has it installed.
"""

from __future__ import annotations

from pathlib import Path

from tests.devcluster import build
from tests.devcluster.build.node import TOOLS

PROGRAM = "configurable-http-proxy"


def ensure_proxy() -> Path:
    """Have the proxy installed as `tests/node/package-lock.json` pins it; returns its program.

    Raises `BuildError` where Node or npm is missing or npm fails.
    """
    return build.ensure([TOOLS])[TOOLS] / "node_modules" / ".bin" / PROGRAM
