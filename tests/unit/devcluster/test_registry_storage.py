"""Images put into a registry's storage without a push; that a registry serves them is for the nodes tier."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.devcluster.addons.storage import publish, withdraw
from tests.devcluster.build.oci import Entry, Image, write_layout

REGISTRY = Path("docker/registry/v2")


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    folder = tmp_path / "layout"
    write_layout(Image(reference="r.test/a:1", entries=(Entry(path="hello", data=b"hello"),)), folder)
    return folder


def test_blobs_are_shared_with_the_layout(layout: Path, tmp_path: Path) -> None:
    digest = publish(layout, tmp_path / "storage", repository="ai/a", tag="1")
    hexadecimal = digest.removeprefix("sha256:")
    blobs = tmp_path / "storage" / REGISTRY / "blobs/sha256"
    data = blobs / hexadecimal[:2] / hexadecimal / "data"
    assert data.samefile(layout / "blobs/sha256" / hexadecimal)
    assert len(list(blobs.glob("*/*/data"))) == 3, "manifest, configuration, one layer"


def test_manifest_layers_and_tag_point_at_the_blobs(layout: Path, tmp_path: Path) -> None:
    digest = publish(layout, tmp_path / "storage", repository="ai/a", tag="1")
    home = tmp_path / "storage" / REGISTRY / "repositories/ai/a"
    links = {str(link.relative_to(home)): link.read_text() for link in home.rglob("link")}
    hexadecimal = digest.removeprefix("sha256:")
    assert links.pop(f"_manifests/revisions/sha256/{hexadecimal}/link") == digest
    assert links.pop("_manifests/tags/1/current/link") == digest
    assert links.pop(f"_manifests/tags/1/index/sha256/{hexadecimal}/link") == digest
    assert sorted(links) == sorted(
        f"_layers/sha256/{value.partition(':')[2]}/link" for value in links.values()
    )
    assert len(links) == 2


def test_a_tag_moves_without_touching_what_others_share(layout: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    write_layout(Image(reference="r.test/a:1", entries=(Entry(path="hello", data=b"world"),)), newer)
    storage = tmp_path / "storage"
    old = publish(layout, storage, repository="ai/a", tag="1")
    new = publish(newer, storage, repository="ai/a", tag="1")
    tag = storage / REGISTRY / "repositories/ai/a/_manifests/tags/1"
    assert (tag / "current/link").read_text() == new
    assert len(list((tag / "index/sha256").iterdir())) == 2
    assert json.loads((layout / "index.json").read_text())["manifests"][0]["digest"] == old


def test_a_repository_can_be_withdrawn(layout: Path, tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    publish(layout, storage, repository="ai/a", tag="1")
    publish(layout, storage, repository="ai/b", tag="1")
    withdraw(storage, repository="ai/a")
    assert [path.name for path in (storage / REGISTRY / "repositories/ai").iterdir()] == ["b"]


def test_a_layout_of_two_images_is_refused(layout: Path, tmp_path: Path) -> None:
    index = json.loads((layout / "index.json").read_text())
    index["manifests"] *= 2
    (layout / "index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="one image for one platform is expected"):
        publish(layout, tmp_path / "storage", repository="ai/a", tag="1")
