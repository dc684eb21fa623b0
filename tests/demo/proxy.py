"""configurable-http-proxy, the proxy that JupyterHub ships with its chart: from npm into the cache, once.

Shell: runs npm.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.errors import last_lines
from tests.devcluster.errors import HostError

PINS = Path(__file__).resolve().parents[1] / "node"
PROGRAM = "configurable-http-proxy"


def ensure_proxy() -> Path:
    """Have the proxy installed as `tests/node/package-lock.json` pins it; returns its program.

    Raises `HostError` where Node or npm is missing or npm fails.
    """
    package, lock = PINS / "package.json", PINS / "package-lock.json"
    target = cache.entry("node", cache.key_of(package.read_bytes(), lock.read_bytes()), "tools")
    program = target / "node_modules" / ".bin" / PROGRAM
    if not program.exists():
        with cache.locked("build-node"):
            if not program.exists():
                with cache.staged(target) as part:
                    part.mkdir()
                    shutil.copy(package, part)
                    shutil.copy(lock, part)
                    _npm_ci(part)
    cache.mark_used(target)
    return program


def _npm_ci(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise HostError(
            "configurable-http-proxy needs Node 20 or newer and npm, which are not in PATH",
            "install them from https://nodejs.org or your distribution",
        )
    log = cache.cache_root() / "logs" / "build" / "npm.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        command = [npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
    if done.returncode:
        raise HostError(
            f"npm could not install configurable-http-proxy:\n{last_lines(log)}", f"its log is {log}"
        )
