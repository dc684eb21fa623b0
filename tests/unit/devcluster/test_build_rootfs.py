"""Images with an operating system: when they are built again, and how buildah is called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.devcluster.build import BuildError, all_steps, bundle, rootfs


class Recorder:
    """A `Shell` that only notes what it is asked to run."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def __call__(
        self,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdout: Path | None = None,
    ) -> None:
        self.commands.append([str(word) for word in command])
        if stdout:
            stdout.write_text("Storing signatures\nsha256:0123\n")


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `images/` that the recipes are made from."""
    copy = shutil.copytree(rootfs.IMAGES, tmp_path / "images")
    monkeypatch.setattr(rootfs, "IMAGES", copy)
    return copy


def keys() -> dict[str, str]:
    return {name: recipe.key for name, recipe in rootfs.recipes().items()}


def test_can_be_asked_for_by_name() -> None:
    steps = all_steps()
    assert "image:base" in steps["image:notebook-plain"].needs
    assert {"image:notebook-plain", "wheel:agent"} <= set(steps["image:notebook"].needs)
    assert {"image:hub-base", "wheel:bundle"} <= set(steps["image:hub"].needs)
    assert {"image:python-base", "wheel:bundle"} <= set(steps["image:services"].needs)
    assert "image:base" in steps["image:ray"].needs
    assert {"image:python-base", "node:tools"} <= set(steps["image:proxy"].needs)
    assert "image:base" in steps["image:postgres"].needs


@pytest.mark.parametrize(
    "changed", ["Dockerfile", "kernel.lock", "server.lock", "jupyter_server_config.json"]
)
def test_a_changed_input_builds_that_image_and_what_stands_on_it_again(images: Path, changed: str) -> None:
    before = keys()
    assert keys() == before
    with (images / "notebook" / changed).open("a") as file:
        file.write("\n")
    assert {name for name, key in keys().items() if key != before[name]} == {"notebook-plain", "notebook"}


def test_another_base_builds_all_above_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys()
    monkeypatch.setattr(rootfs, "PACKAGES", (*rootfs.PACKAGES, "tini"))
    assert not before.items() & keys().items()


def test_a_changed_module_builds_the_images_with_the_bundle_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in bundle.SOURCES:
        (tmp_path / name).write_text("old")
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    before = keys()
    (tmp_path / "hub_ext").write_text("new")
    assert {name for name, key in keys().items() if key != before[name]} == {"hub", "services"}


@pytest.mark.parametrize("name", ["base", "notebook", "hub", "services", "ray", "proxy", "postgres"])
def test_says_at_once_that_root_is_needed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    run = Recorder()
    with pytest.raises(BuildError, match=f"'{name}' can only be built by root"):
        rootfs.recipes()[name].make(tmp_path / "image", run)
    assert run.commands == []


def test_builds_in_a_mount_namespace_and_pulls_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(rootfs, "ensure_tools", lambda names: {name: Path("/bin") / name for name in names})
    run = Recorder()
    recipe = rootfs.recipes()["notebook-plain"]
    recipe.make(tmp_path / "image", run)
    assert all(command[:2] == ["unshare", "--mount"] for command in run.commands)
    verbs = [next(w for w in command if w in {"pull", "tag", "build", "push"}) for command in run.commands]
    assert verbs == ["pull", "tag", "build", "push"]
    assert {"--pull-never", f"--timestamp={rootfs.EPOCH}"} <= set(run.commands[2])
    assert [path.name for path in tmp_path.iterdir()] == [], "the storage is dropped"


def test_the_machines_certificates_and_index_are_passed_into_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle.crt"
    bundle.touch()
    monkeypatch.delenv("PIP_CERT", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    settings = {
        "global.cert": str(bundle),
        "global.index-url": "https://pypi.example.com/simple",
        "list.format": "x",
    }
    monkeypatch.setattr(rootfs, "_pip_settings", lambda: settings)
    run = Recorder()
    rootfs.Buildah(Path("buildah"), tmp_path / "work", run).build(tmp_path, tag="image")
    assert f"--volume={bundle}:/run/host-ca.crt:ro" in run.commands[0]
    assert (tmp_path / "work" / "pip.conf").read_text() == (
        "[global]\nindex-url = https://pypi.example.com/simple\ncert = /run/host-ca.crt\n"
    )


def test_nothing_is_passed_where_the_machine_has_nothing_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_CERT", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(rootfs, "_pip_settings", dict)
    run = Recorder()
    rootfs.Buildah(Path("buildah"), tmp_path / "work", run).build(tmp_path, tag="image")
    assert not any("host-ca" in word for word in run.commands[0])
    assert (tmp_path / "work" / "pip.conf").read_text() == "[global]\n"


def test_keeps_the_builds_of_an_image_that_were_used_last(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(rootfs, "ensure_tools", lambda names: {name: Path("/bin") / name for name in names})
    for age, key in enumerate(["newest", "newer", "old", "older"]):
        for name in ("notebook-plain", "hub"):
            folder = cache_folder / "images" / f"{key}-{name}" / name
            folder.mkdir(parents=True)
            os.utime(folder.parent, (1e9 - age, 1e9 - age))
    rootfs.recipes()["notebook-plain"].make(tmp_path / "part" / "image", Recorder())
    assert {path.name for path in (cache_folder / "images").glob("*-notebook-plain")} == {
        "newest-notebook-plain",
        "newer-notebook-plain",
        "old-notebook-plain",
    }
    assert len(list((cache_folder / "images").glob("*-hub"))) == 4


def test_layers_of_several_images_take_up_room_once(cache_folder: Path) -> None:
    def layout(name: str, **blobs: str) -> Path:
        folder = cache_folder / "images" / f"key-{name}" / name
        (folder / "blobs" / "sha256").mkdir(parents=True)
        for digest, content in blobs.items():
            (folder / "blobs" / "sha256" / digest).write_text(content)
        return folder / "blobs" / "sha256"

    base, above = layout("base", aa="shared"), layout("above", aa="shared", bb="own")
    rootfs.share_blobs(above.parents[1])
    assert (above / "aa").samefile(base / "aa")
    assert {blob.name: blob.read_text() for blob in above.iterdir()} == {"aa": "shared", "bb": "own"}
    rootfs.share_blobs(base.parents[1])
    assert (above / "aa").samefile(base / "aa")
    assert (base / "aa").stat().st_nlink == 2
