"""What this machine must offer, and the commands run on it.

Shell: looks at the machine and runs commands.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from ipaddress import IPv4Network
from pathlib import Path

from tests.devcluster.commands import execute
from tests.devcluster.errors import HostError
from tests.devcluster.processes import SYSTEM_PATH
from tests.devcluster.spec import ClusterSpec, Size

UTIL_LINUX = ("nsenter", "setpriv", "unshare")
MASKED = (Path("/run"), Path("/var/lib"), Path("/var/log"))
"""Folders that nodes have of their own, so the cache cannot be there."""


def check_host(spec: ClusterSpec, cache: Path) -> None:
    """Raise `HostError` if a cluster of this kind cannot run here."""
    if not sys.platform.startswith("linux"):
        raise HostError("the development cluster needs Linux", "use a Linux virtual machine")
    if spec.size is Size.NODES:
        _check_root()
        _check_cache(cache)
    for command in UTIL_LINUX:
        if shutil.which(command, path=SYSTEM_PATH) is None:
            raise HostError(f"{command} is missing", "install it: apt-get install util-linux")


def _check_root() -> None:
    if os.geteuid() != 0:
        raise HostError(
            "real nodes need root: for network and mount namespaces, cgroups and containers",
            "run the same command with sudo, or use what works without root: "
            "`python -m tests.devcluster up control` (API server, controllers, scheduler and kwok nodes)",
        )


def _check_cache(cache: Path) -> None:
    real = cache.resolve()
    for folder in MASKED:
        if real.is_relative_to(folder.resolve()):
            raise HostError(
                f"the cache {cache} is below {folder}, which each node has of its own",
                "set GPU_WORKSPACES_CACHE to a folder elsewhere, such as /srv/gpu-workspaces",
            )


def run(*argv: str | Path, input: str | None = None) -> str:  # noqa: A002
    """Run a command of the host to its end and return what it printed; raises `CommandFailedError`."""
    return execute(argv, env={"PATH": SYSTEM_PATH, "LANG": "C.UTF-8"}, input=input)


def routed_networks() -> list[IPv4Network]:
    """All IPv4 networks that the host has a route to, its own addresses included."""
    routes = json.loads(run("ip", "-json", "-4", "route", "show", "table", "all"))
    return [IPv4Network(r["dst"], strict=False) for r in routes if r["dst"] != "default"]


def is_overlay(folder: Path) -> bool:
    """Whether a folder lies on an overlay file system, which containerd cannot stack another one on."""
    return run("stat", "--file-system", "--format=%T", folder).strip() == "overlayfs"


def shares_network(pid: int) -> bool:
    """Whether a process is in this process's network namespace."""
    return Path(f"/proc/{pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink()


def ip_batch(lines: Sequence[str], *, namespace_of: int | None = None) -> None:
    """Run `ip` commands, in the network namespace of a process if one is given; stops at the first error."""
    enter: tuple[str, ...] = ()
    if namespace_of is not None:
        if shares_network(namespace_of):
            raise HostError(
                f"process {namespace_of} has no network namespace of its own",
                "nothing was changed on the host",
            )
        enter = ("nsenter", f"--net=/proc/{namespace_of}/ns/net")
    run(*enter, "ip", "-batch", "-", input="".join(f"{line}\n" for line in lines))
