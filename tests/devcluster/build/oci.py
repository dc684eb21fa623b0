"""Writes OCI images: the same input gives the same bytes, so that an image keeps its digest.

Layers are plain tar: compressed ones would differ from one zlib to the next, and nothing here travels far.
Source of the formats: OCI image specification 1.1 (image-layout.md, manifest.md, config.md, layer.md).
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What OCI (and Go) calls the machines that the kernel names so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, folder or symbolic link in a layer; exactly one of `data`, `source` and `link`, or a folder."""

    path: str
    """Without a leading slash."""
    data: bytes | None = None
    source: Path | None = None
    link: str = ""
    mode: int = 0o755
    owner: int = 0
    """User and group id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an image consists of."""

    reference: str
    """Full name with tag, as pods name it."""
    entries: tuple[Entry, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    """The image configuration's `config`: Entrypoint, User, Env, … ."""
    architecture: str = "amd64"


def write_layer(entries: Iterable[Entry], out: IO[bytes]) -> None:
    """Write a layer: sorted by path, without times or names of this machine."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in sorted(entries, key=lambda entry: entry.path):
            _add(tar, entry)


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.path)
    info.mode, info.uid, info.gid = entry.mode, entry.owner, entry.owner
    if entry.link:
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
        tar.addfile(info)
    elif entry.data is not None:
        info.size = len(entry.data)
        tar.addfile(info, io.BytesIO(entry.data))
    elif entry.source is not None:
        info.size = entry.source.stat().st_size
        with entry.source.open("rb") as content:
            tar.addfile(info, content)
    else:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)


def write_layout(image: Image, folder: Path) -> str:
    """Write an image of one layer as an OCI layout folder; returns the manifest's digest."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    part = blobs / "layer"
    with part.open("wb") as out:
        write_layer(image.entries, out)
    with part.open("rb") as layer:
        digest = hashlib.file_digest(layer, "sha256").hexdigest()
    size = part.stat().st_size
    part.rename(blobs / digest)
    layer_digest = f"sha256:{digest}"
    config = {
        "architecture": image.architecture,
        "os": "linux",
        "config": dict(image.config),
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _descriptor(CONFIG, _blob(blobs, config)),
        "layers": [{"mediaType": LAYER, "digest": layer_digest, "size": size}],
    }
    described = _descriptor(MANIFEST, _blob(blobs, manifest))
    named = {
        # The first is read by containerd's import, the second by skopeo, buildah and crane.
        "io.containerd.image.name": image.reference,
        "org.opencontainers.image.ref.name": image.reference,
    }
    index = {"schemaVersion": 2, "manifests": [{**described, "annotations": named}]}
    (folder / "index.json").write_bytes(_json(index))
    (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    return str(described["digest"])


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _blob(blobs: Path, value: object) -> bytes:
    data = _json(value)
    (blobs / hashlib.sha256(data).hexdigest()).write_bytes(data)
    return data


def _descriptor(media_type: str, data: bytes) -> dict[str, str | int]:
    return {
        "mediaType": media_type,
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "size": len(data),
    }


def digest(layout: Path) -> str:
    """The digest of the image in a layout folder, as pods and registries name it.

    Raises `ValueError` when the folder holds none or several.
    """
    manifests = json.loads((layout / "index.json").read_text())["manifests"]
    if len(manifests) != 1:
        raise ValueError(f"{layout} holds {len(manifests)} images; one is expected")
    return str(manifests[0]["digest"])


def archive(layout: Path, out: IO[bytes]) -> None:
    """Write a layout folder as one tar, which is what `ctr images import` reads."""
    files = sorted(path for path in layout.rglob("*") if path.is_file())
    write_layer((Entry(path=str(path.relative_to(layout)), source=path, mode=0o644) for path in files), out)
