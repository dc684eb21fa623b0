"""Makes of an image another one with the same programs: of an ID of its own, and with layers no node has yet.

Shell: files.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

from tests.devcluster.build.oci import LAYER, Entry, write_layer

LABEL = "devcluster.test/variant"


def write_variant(layout: Path, target: Path, *, mark: str, padding: bytes = b"") -> None:
    """Write an OCI layout folder with the image of `layout`, marked by a label and padded by a layer.

    Parameters
    ----------
    mark
        The label's value; another one gives another image.
    padding
        Content of a file in one more layer, which is not compressed: its size is about what is pulled.
    """
    blobs = target / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for blob in (layout / "blobs" / "sha256").iterdir():
        os.link(blob, blobs / blob.name)
    (target / "oci-layout").write_bytes((layout / "oci-layout").read_bytes())
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = _read(layout, described["digest"])
    config = _read(layout, manifest["config"]["digest"])
    config.setdefault("config", {}).setdefault("Labels", {})[LABEL] = mark
    if padding:
        layer = io.BytesIO()
        write_layer([Entry(path="padding", data=padding, mode=0o644)], layer)
        manifest["layers"].append({"mediaType": LAYER, **_store(blobs, layer.getvalue())})
        config["rootfs"]["diff_ids"].append(manifest["layers"][-1]["digest"])
    manifest["config"] |= _store(blobs, json.dumps(config).encode())
    manifest_descriptor = {
        "mediaType": described["mediaType"],
        **_store(blobs, json.dumps(manifest).encode()),
    }
    index = {"schemaVersion": 2, "manifests": [manifest_descriptor]}
    (target / "index.json").write_text(json.dumps(index))


def _read(layout: Path, digest: str) -> Any:
    return json.loads((layout / "blobs" / digest.replace(":", "/")).read_text())


def _store(blobs: Path, data: bytes) -> dict[str, str | int]:
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}
