"""Puts images into a registry's storage folder without pushing them: blobs are hard-linked from the cache.

The layout is that of the CNCF distribution registry's `filesystem` driver, version 2 (its
`registry/storage/paths.go`); a running registry serves what is added at once.

Shell: files.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path("docker/registry/v2")
INDEX_TYPES = ("application/vnd.oci.image.index.v1+json",)


def publish(layout: Path, storage: Path, *, repository: str, tag: str) -> str:
    """Offer the image of an OCI layout folder as `repository:tag`; returns its manifest's digest.

    Raises `ValueError` when the folder does not hold exactly one image for one platform.
    """
    described = json.loads((layout / "index.json").read_text())["manifests"]
    if len(described) != 1 or described[0]["mediaType"] in INDEX_TYPES:
        raise ValueError(f"{layout}: one image for one platform is expected")
    digest = str(described[0]["digest"])
    manifest = json.loads(_blob(layout, digest).read_text())
    parts = [manifest["config"], *manifest["layers"]]
    for part in (digest, *(str(part["digest"]) for part in parts)):
        _link_blob(_blob(layout, part), storage / ROOT / "blobs" / _folder(part) / "data")
    home = storage / ROOT / "repositories" / repository
    for part in parts:
        _point(home / "_layers" / _plain(part["digest"]), part["digest"])
    _point(home / "_manifests" / "revisions" / _plain(digest), digest)
    _point(home / "_manifests" / "tags" / tag / "index" / _plain(digest), digest)
    _point(home / "_manifests" / "tags" / tag / "current", digest)
    return digest


def withdraw(storage: Path, *, repository: str) -> None:
    """Take a repository out of the registry; blobs that others share stay."""
    shutil.rmtree(storage / ROOT / "repositories" / repository)


def _blob(layout: Path, digest: str) -> Path:
    algorithm, _, value = digest.partition(":")
    return layout / "blobs" / algorithm / value


def _plain(digest: Any) -> Path:
    algorithm, _, value = str(digest).partition(":")
    return Path(algorithm) / value


def _folder(digest: str) -> Path:
    algorithm, _, value = digest.partition(":")
    return Path(algorithm) / value[:2] / value


def _link_blob(source: Path, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        return  # another publisher was faster with the same content
    except OSError:  # the cache is on another file system
        _write(target, source.read_bytes())


def _point(folder: Path, digest: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "link", str(digest).encode())


def _write(path: Path, content: bytes) -> None:
    """Write a file so that a registry that serves it meanwhile sees the old content or the new."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(content)
    Path(part.name).rename(path)
