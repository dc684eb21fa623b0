"""Programs that are not built: they come with the machine or from Debian's packages.

Shell: looks for files, runs apt-get.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.errors import MissingToolsError, UnknownNameError, last_lines

KNOWN_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/usr/lib/cni", "/opt/cni/bin")
"""Looked through after PATH, which for other users than root often lacks the `sbin` folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program that somebody else packages."""

    packages: tuple[str, ...]
    """Debian's packages that have it and what it cannot do without."""
    file: str = ""
    """The executable, where it is called otherwise than the tool."""
    also: tuple[str, ...] = ()
    """Files without which it is of no use, absolute."""


TOOLS: Mapping[str, Tool] = {
    "buildah": Tool(packages=("buildah",)),
    "chromium": Tool(packages=("chromium",)),
    # One of many in a folder; which of them are used is the network configuration's business.
    "cni-plugins": Tool(packages=("containernetworking-plugins",), file="host-local"),
    "conntrack": Tool(packages=("conntrack",)),
    "docker-registry": Tool(packages=("docker-registry",)),
    "gcc": Tool(packages=("gcc", "libc6-dev"), also=("/usr/include/stdio.h",)),
    "htpasswd": Tool(packages=("apache2-utils",)),
    "ip": Tool(packages=("iproute2",)),
    "ipset": Tool(packages=("ipset",)),
    "iptables": Tool(packages=("iptables",)),
    "java": Tool(packages=("openjdk-17-jre-headless",)),
    "mmdebstrap": Tool(packages=("mmdebstrap",)),
    "mvn": Tool(packages=("maven",)),
    "runc": Tool(packages=("runc",)),
    "skopeo": Tool(packages=("skopeo",)),
}


def ensure_tools(names: Iterable[str]) -> dict[str, Path]:
    """Find tools of the table, and install the packages of those that are missing.

    Raises `UnknownNameError`, or `MissingToolsError` where this machine cannot install them.
    """
    wanted = tuple(names)
    found = {name: find(name) for name in wanted}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        install([package for name in missing for package in TOOLS[name].packages], missing=missing)
        found |= {name: find(name) for name in missing}
    still = [name for name, path in found.items() if path is None]
    if still:
        packages = [package for name in still for package in TOOLS[name].packages]
        raise MissingToolsError(still, packages, because="the packages are installed but do not have them")
    return {name: path for name, path in found.items() if path is not None}


def find(name: str) -> Path | None:
    """Where a tool of the table is, or `None`."""
    if name not in TOOLS:
        raise UnknownNameError(name, TOOLS)
    tool = TOOLS[name]
    search = os.pathsep.join([os.environ.get("PATH", ""), *KNOWN_FOLDERS])
    path = shutil.which(tool.file or name, path=search)
    return Path(path) if path and all(Path(file).exists() for file in tool.also) else None


def ensure_debian(packages: Iterable[str]) -> None:
    """Install those of Debian's packages that are missing.

    Raises `MissingToolsError` where that cannot be done.
    """
    wanted = list(packages)
    if shutil.which("dpkg-query") is None:
        raise MissingToolsError(wanted, wanted, because="this machine does not have Debian's package manager")
    missing = [package for package in wanted if not _installed(package)]
    if missing:
        install(missing, missing=missing)


def _installed(package: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Abbrev}", package]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.startswith("ii")


def install(packages: Iterable[str], *, missing: Iterable[str]) -> None:
    """Install Debian packages; fetches the lists of packages only when it does not work without.

    Raises `MissingToolsError`, which names `missing`.
    """
    packages, missing = sorted(set(packages)), list(missing)
    if shutil.which("apt-get") is None:
        raise MissingToolsError(missing, packages, because="this machine does not have apt-get")
    if os.geteuid() != 0:
        raise MissingToolsError(missing, packages, because="only root can install them")
    _apt_or_raise(["install", "--yes", "--no-install-recommends", *packages], missing, packages)


def unpack_package(package: str, folder: Path) -> None:
    """Put a Debian package's files into a folder, without installing it.

    Raises `MissingToolsError` when it cannot be fetched.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingToolsError(
            [package], [package], because="this machine does not have apt-get and dpkg-deb"
        )
    with tempfile.TemporaryDirectory() as fetched:
        _apt_or_raise(["download", package], [package], [package], cwd=Path(fetched))
        (archive,) = Path(fetched).glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, folder], check=True)


def _apt_or_raise(
    command: list[str], missing: list[str], packages: list[str], cwd: Path | None = None
) -> None:
    """Run apt-get; when that fails, with fresh lists of packages once more."""
    log = cache.cache_root() / "logs" / "build" / "apt.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with cache.locked("apt"):
        done = _apt(command, log, cwd) or (_apt(["update"], log) and _apt(command, log, cwd))
    if not done:
        because = f"apt-get failed, see {log}:\n{last_lines(log)}\n"
        raise MissingToolsError(missing, packages, because=because)


def _apt(arguments: list[str], log: Path, cwd: Path | None = None) -> bool:
    """Run apt-get without questions, after any other package manager; says whether it went well."""
    with log.open("ab") as output:
        done = subprocess.run(
            ["apt-get", "--option=DPkg::Lock::Timeout=300", *arguments],
            cwd=cwd,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return done.returncode == 0
