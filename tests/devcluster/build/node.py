"""The Node programs of tests and demo, from npm: configurable-http-proxy, which the chart ships, and axe.

Shell: runs npm.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.errors import MissingToolsError
from tests.devcluster.build.plan import Pool, Shell, Step

TOOLS = "node:tools"
PINS = Path(__file__).resolve().parents[2] / "node"
LISTS = ("package.json", "package-lock.json")


def steps() -> dict[str, Step]:
    """The build step of the programs."""
    step = Step(name=TOOLS, target=tools_folder(), make=_make, pool=Pool.DOWNLOAD, seconds=20)
    return {TOOLS: step}


def tools_folder() -> Path:
    """Where they are when the step is done, in `node_modules`; the folder above is named by their pins."""
    return cache.entry("node", cache.key_of(*((PINS / name).read_bytes() for name in LISTS)), "tools")


def _make(target: Path, run: Shell) -> None:
    if shutil.which("npm") is None or shutil.which("node") is None:
        because = "install Node 20 or newer with npm from https://nodejs.org or your distribution"
        raise MissingToolsError(["npm"], [], because=because)
    target.mkdir()
    for name in LISTS:
        shutil.copy(PINS / name, target)
    run("npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", cwd=target)
