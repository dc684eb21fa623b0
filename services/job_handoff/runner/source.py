"""Putting the source of a run into its work folder.

Shell: fetches and unpacks files.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from .client import CHUNK, Service
from .common import FILES, WORK, RunError

PATCH = ".handoff-changes.patch"
"""Difference of a checkout to its commit, among the files that were never committed; no repository has it."""


def fetch(spec: dict[str, Any], service: Service) -> Path:
    """Put the source into the work folder and give the folder to run in."""
    source = spec["source"]
    if source["type"] == "home":
        folder = Path(source["folder"])
        if not folder.is_dir():
            raise RunError("entry-missing", f"the home has no folder {folder}")
        return folder
    FILES.mkdir(parents=True, exist_ok=True)
    if source["type"] == "git":
        _clone(source)
        if source["patch"]:
            _unpack(_fetched(service, source["patch"]), source["patch"])
            _apply_changes()
        return FILES
    archive = Path(source["file"]) if "file" in source else _fetched(service, source["sha256"])
    _unpack(archive, source["sha256"])
    return FILES


def _fetched(service: Service, digest: str) -> Path:
    archive = WORK / "source.tar.gz"
    service.get(f"source/{digest}", archive)
    return archive


def _unpack(archive: Path, digest: str) -> None:
    hashed = hashlib.sha256()
    with archive.open("rb") as content:
        while chunk := content.read(CHUNK):
            hashed.update(chunk)
    if hashed.hexdigest() != digest:
        raise RunError("source-lost", f"the source is not the one that was submitted: {hashed.hexdigest()}")
    with tarfile.open(archive, "r:gz") as opened:
        members = opened.getmembers()
        for member in members:
            _check_member(member)
        safer: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        opened.extractall(FILES, members, **safer)  # noqa: S202 - each was checked


def _check_member(member: tarfile.TarInfo) -> None:
    """Refuse what the service refuses too: this file does not trust that it did."""
    parts = member.name.split("/")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(member.name), member.linkname))
    leaves = member.issym() and (member.linkname.startswith("/") or target.split("/")[0] == "..")
    if (
        member.name.startswith("/")
        or ".." in parts
        or leaves
        or not (member.isreg() or member.isdir() or member.issym())
    ):
        raise RunError("source-lost", f"{member.name!r} does not belong into a source")


def _clone(source: dict[str, Any]) -> None:
    _git("init", "--quiet", ".")
    _git("fetch", "--quiet", "--depth=1", source["url"], source["commit"])
    _git("checkout", "--quiet", "--detach", "FETCH_HEAD")


def _apply_changes() -> None:
    """Change the commit into what stood in the workspace."""
    patch = FILES / PATCH
    if patch.exists():
        _git("apply", "--whitespace=nowarn", str(patch))
        patch.unlink()


def _git(*arguments: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            cwd=FILES,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"},
            check=False,
        )
    except FileNotFoundError as error:
        raise RunError("source-lost", "the image has no git, which fetches commits") from error
    if done.returncode:
        what = "the uncommitted changes do not apply" if arguments[0] == "apply" else f"git {arguments[0]}"
        raise RunError("source-lost", f"{what}: {done.stderr.strip()[-500:]}")
