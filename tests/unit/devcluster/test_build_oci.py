from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from tests.devcluster.build.oci import Entry, Image, archive, digest, write_layout


def entries(folder: Path) -> tuple[Entry, ...]:
    folder.mkdir(exist_ok=True)
    program = folder / "program"
    program.write_bytes(b"\x7fELF and so on")
    return (
        Entry(path="manager", source=program),
        Entry(path="etc/passwd", data=b"root:x:0:0::/:/bin/sh\n", mode=0o644),
        Entry(path="tmp", mode=0o1777),
        Entry(path="bin/sh", link="busybox"),
        Entry(path="home", mode=0o700, owner=65532),
    )


def image(*given: Entry) -> Image:
    return Image(reference="devcluster.test/thing:1", entries=given, config={"User": "65532:65532"})


def test_the_same_input_gives_the_same_bytes_at_any_time_and_place(tmp_path: Path) -> None:
    first = write_layout(image(*entries(tmp_path / "one")), tmp_path / "a")
    given = entries(tmp_path / "two")
    os.utime(tmp_path / "two" / "program", (1, 1))
    (tmp_path / "two" / "program").chmod(0o600)
    second = write_layout(image(*reversed(given)), tmp_path / "b")
    assert first == second == digest(tmp_path / "a")
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(files) == 5
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)


def test_other_content_has_another_digest(tmp_path: Path) -> None:
    given = entries(tmp_path / "files")
    first = write_layout(image(*given), tmp_path / "a")
    assert write_layout(image(*given, Entry(path="more", data=b"")), tmp_path / "b") != first
    other_mode = [Entry(path="tmp", mode=0o755) if e.path == "tmp" else e for e in given]
    assert write_layout(image(*other_mode), tmp_path / "c") != first


def test_every_blob_is_what_its_name_and_its_descriptor_say(tmp_path: Path) -> None:
    told = write_layout(image(*entries(tmp_path / "files")), tmp_path / "layout")
    blobs = tmp_path / "layout" / "blobs" / "sha256"
    for blob in blobs.iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    index = json.loads((tmp_path / "layout" / "index.json").read_bytes())
    (described,) = index["manifests"]
    assert described["digest"] == told
    assert set(described["annotations"].values()) == {"devcluster.test/thing:1"}
    manifest = json.loads((blobs / told.removeprefix("sha256:")).read_bytes())
    for part in (manifest["config"], *manifest["layers"]):
        assert (blobs / part["digest"].removeprefix("sha256:")).stat().st_size == part["size"]
    config = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_bytes())
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]]
    assert config["config"]["User"] == "65532:65532"


def test_a_layer_holds_what_was_asked_for(tmp_path: Path) -> None:
    told = write_layout(image(*entries(tmp_path / "files")), tmp_path / "layout")
    blobs = tmp_path / "layout" / "blobs" / "sha256"
    layer = json.loads((blobs / told.removeprefix("sha256:")).read_bytes())["layers"][0]
    with tarfile.open(blobs / layer["digest"].removeprefix("sha256:")) as tar:
        found = {member.name: member for member in tar}
        assert list(found) == ["bin/sh", "etc/passwd", "home", "manager", "tmp"]
        content = tar.extractfile("manager")
        assert content is not None
        assert content.read() == b"\x7fELF and so on"
    assert found["bin/sh"].issym()
    assert found["bin/sh"].linkname == "busybox"
    assert found["tmp"].isdir()
    assert found["tmp"].mode == 0o1777
    assert (found["home"].uid, found["home"].gid) == (65532, 65532)
    assert {(member.mtime, member.uname, member.gname) for member in found.values()} == {(0, "", "")}


def test_an_archive_of_a_layout_is_the_layout_and_always_the_same(tmp_path: Path) -> None:
    write_layout(image(*entries(tmp_path / "files")), tmp_path / "layout")
    first, second = io.BytesIO(), io.BytesIO()
    archive(tmp_path / "layout", first)
    archive(tmp_path / "layout", second)
    assert first.getvalue() == second.getvalue()
    first.seek(0)
    with tarfile.open(fileobj=first) as tar:
        names = tar.getnames()
        index = tar.extractfile("index.json")
        assert index is not None
        assert index.read() == (tmp_path / "layout" / "index.json").read_bytes()
    assert {"index.json", "oci-layout"} < set(names)
    assert sum(name.startswith("blobs/sha256/") for name in names) == 3


def test_a_layout_with_several_images_is_refused(tmp_path: Path) -> None:
    write_layout(image(), tmp_path / "layout")
    index = json.loads((tmp_path / "layout" / "index.json").read_bytes())
    index["manifests"] *= 2
    (tmp_path / "layout" / "index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="holds 2 images; one is expected"):
        digest(tmp_path / "layout")
