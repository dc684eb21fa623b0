"""Where code and images of runs come from: commits with what was not committed, and servers that run."""

from __future__ import annotations

import hashlib
import json
import subprocess
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from hub_ext.catalog.model import Catalog
from services.job_handoff import git
from services.job_handoff.people import ask_hub, image_of, server_image
from services.job_handoff.runner import common, program, source

from .conftest import TODAY, World

DIGEST = "sha256:" + "b" * 64


def run(*command: str, cwd: Path) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *command], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with a commit, a change that was not committed, and an untracked file."""
    work = tmp_path / "checkout"
    work.mkdir()
    run("init", "-q", cwd=work)
    run("config", "uploadpack.allowAnySHA1InWant", "true", cwd=work)
    (work / "a.py").write_text("1\n")
    run("add", ".", cwd=work)
    run("commit", "-qm", "first", cwd=work)
    (work / "a.py").write_text("2\n")
    (work / "new.py").write_text("3\n")
    return work


class Served:
    """The service, as far as it gives out one archive."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def get(self, path: str, target: Path) -> None:
        assert path == f"source/{hashlib.sha256(self._content).hexdigest()}"
        target.write_bytes(self._content)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (source, common):
        monkeypatch.setattr(module, "FILES", tmp_path / "files", raising=False)
        monkeypatch.setattr(module, "WORK", tmp_path, raising=False)
    return tmp_path / "files"


def test_a_commit_arrives_with_what_was_not_committed(repository: Path, work: Path) -> None:
    commit = run("rev-parse", "HEAD", cwd=repository)
    changes = git._changes(repository)
    assert changes is not None
    with closing(changes):
        content = changes.file.read()
    told = {"type": "git", "url": f"file://{repository}", "commit": commit, "patch": changes.sha256}
    folder = source.fetch({"source": told}, Served(content))  # type: ignore[arg-type]
    assert folder == work
    assert ((work / "a.py").read_text(), (work / "new.py").read_text()) == ("2\n", "3\n")


def test_a_commit_that_is_not_there_is_named(repository: Path, work: Path) -> None:
    told = {"type": "git", "url": f"file://{repository}", "commit": "0" * 40, "patch": None}
    with pytest.raises(common.RunError) as error:
        source.fetch({"source": told}, Served(b""))  # type: ignore[arg-type]
    assert error.value.reason == "source-lost"


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({"kernelspec": {"language": "R"}}, "R"),
        ({"language_info": {"name": "julia"}}, "julia"),
        ({"kernelspec": {"name": "python3"}}, "python"),
        ({}, "python"),
    ],
)
def test_notebooks_that_do_not_say_their_language_are_python(
    tmp_path: Path, metadata: dict[str, Any], language: str
) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"metadata": metadata}))
    assert program.language_of(file) == language
    file.write_text("broken")
    assert program.language_of(file) == "python"


# The image of a server


def status(text: str) -> dict[str, Any]:
    return {"status": {"containerStatuses": [{"name": "notebook", "imageID": text}]}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"registry.example.com/lab@{DIGEST}", f"registry.example.com/lab@{DIGEST}"),
        (f"docker-pullable://registry.example.com/lab@{DIGEST}", f"registry.example.com/lab@{DIGEST}"),
        (DIGEST, None),
        ("", None),
        ("registry.example.com/lab:latest", None),
    ],
)
def test_the_digest_is_the_kubelet_s(text: str, found: str | None) -> None:
    image = image_of(status(text))
    assert (str(image) if image else None) == found


async def image(world: World, catalog: Catalog, server: str | None, today: date = TODAY) -> str | None:
    asker = await ask_hub(world.service.hub, "ada")
    found = await server_image(
        asker, server, catalog, today=today, kube=world.service.core.kube, namespaces=("hub",)
    )
    return str(found.reference) if found else None


async def test_the_image_of_a_running_server_is_found_by_digest(world: World, catalog: Catalog) -> None:
    assert await image(world, catalog, "") is None
    world.hub.add_server("ada", options={"profile": "desk"})
    assert await image(world, catalog, "") == str(catalog.images["base"].reference)
    assert await image(world, catalog, "other") is None
    assert await image(world, catalog, None) is None


async def test_where_the_catalog_does_not_pin_the_pod_is_asked_and_only_the_user_s_own(
    world: World, catalog: Catalog
) -> None:
    world.hub.add_server("ada", options={"profile": "moving"})
    assert await image(world, catalog, "") is None
    for number, (user, digest) in enumerate((("eve", "c"), ("ada", "b"))):
        notes = {"gpu-workspaces.jupyter.org/user": user, "gpu-workspaces.jupyter.org/server": ""}
        labels = {"gpu-workspaces.jupyter.org/user": "ada"}
        metadata = {"name": f"p{number}", "namespace": "hub", "labels": labels, "annotations": notes}
        pod = status(f"registry.example.com/lab@sha256:{digest * 64}")
        world.kube.put_for_test({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}} | pod)
    assert await image(world, catalog, "") == f"registry.example.com/lab@{DIGEST}"


# What git would lose on the way


def arrived(repository: Path, work: Path) -> Path:
    """The files of a run of the checkout as it stands."""
    changes = git._changes(repository)
    assert changes is not None
    with closing(changes):
        content = changes.file.read()
    commit = run("rev-parse", "HEAD", cwd=repository)
    told = {"type": "git", "url": f"file://{repository}", "commit": commit, "patch": changes.sha256}
    return source.fetch({"source": told}, Served(content))  # type: ignore[arg-type]


def test_a_change_arrives_byte_for_byte_whatever_the_user_s_own_settings(
    repository: Path, work: Path
) -> None:
    (repository / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (repository / "raw.bin").write_bytes(bytes(range(256)))
    run("add", ".", cwd=repository)
    run("commit", "-qm", "second", cwd=repository)
    for name, value in (("diff.noprefix", "true"), ("color.ui", "always"), ("diff.external", "/bin/false")):
        run("config", name, value, cwd=repository)
    (repository / "dos.txt").write_bytes(b"one\r\nthree\r\nlone\rend")
    (repository / "raw.bin").write_bytes(bytes(reversed(range(256))))
    there = arrived(repository, work)
    for name in ("dos.txt", "raw.bin"):
        assert (there / name).read_bytes() == (repository / name).read_bytes()
    assert not (there / source.PATCH).exists()


def test_nothing_untracked_is_left_behind(repository: Path, work: Path) -> None:
    (repository / "changes.patch").write_text("the user's own\n")
    (repository / ".config").mkdir()
    (repository / ".config" / "run.yaml").write_text("lr: 1\n")
    (repository / "go.sh").write_text("#!/bin/sh\n")
    (repository / "go.sh").chmod(0o755)
    (repository / "link").symlink_to("a.py")
    (repository / "left.out").write_text("x")
    (repository / ".handoffignore").write_text("*.out\n")
    there = arrived(repository, work)
    assert (there / "a.py").read_text() == "2\n"
    assert (there / "changes.patch").read_text() == "the user's own\n"
    assert (there / ".config" / "run.yaml").exists()
    assert (there / "go.sh").stat().st_mode & 0o100
    assert (there / "link").readlink() == Path("a.py")
    assert not (there / "left.out").exists()


@pytest.mark.parametrize("what", ["nested", "submodule", "lfs"])
def test_files_that_a_fetch_does_not_bring_are_refused(repository: Path, what: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    run("init", "-q", cwd=other)
    (other / "b.py").write_text("b\n")
    run("add", ".", cwd=other)
    run("commit", "-qm", "other", cwd=other)
    match what:
        case "nested":
            run("clone", "-q", str(other), "inner", cwd=repository)
        case "submodule":
            run("submodule", "--quiet", "add", str(other), "inner", cwd=repository)
        case "lfs":
            (repository / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
            run("add", ".gitattributes", cwd=repository)
    run("update-ref", "refs/remotes/origin/main", "HEAD", cwd=repository)
    run("remote", "add", "origin", "https://git.example.com/code.git", cwd=repository)
    with pytest.raises(git.GitError, match="does not fetch"):
        git.read_checkout(repository)


def test_a_file_that_git_ignores_is_not_run_from_a_commit(repository: Path) -> None:
    (repository / ".gitignore").write_text("scratch.py\n")
    (repository / "scratch.py").write_text("1\n")
    git.check_taken(repository / "new.py")
    with pytest.raises(git.GitError, match="would not have it"):
        git.check_taken(repository / "scratch.py")


def test_an_image_without_git_says_so(repository: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    told = {"type": "git", "url": f"file://{repository}", "commit": "0" * 40, "patch": None}
    with pytest.raises(common.RunError, match="has no git"):
        source.fetch({"source": told}, Served(b""))  # type: ignore[arg-type]
