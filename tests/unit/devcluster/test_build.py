from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.devcluster import build, cache
from tests.devcluster.build import __main__ as command
from tests.devcluster.build import golang, images
from tests.devcluster.build.oci import digest
from tests.devcluster.build.plan import Pool


def pretend_built(name: str) -> Path:
    """Put something where a built thing would be."""
    target = build.all_steps()[name].target
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("built before")
    return target


def test_what_is_there_is_handed_out_without_a_word() -> None:
    program, manifest = pretend_built("kubelet"), pretend_built("manifest:kueue")
    reports: list[object] = []
    assert build.ensure(["kubelet"], report=reports.append) == {"kubelet": program}
    assert build.manifest("kueue", report=reports.append) == manifest
    assert reports == []
    assert program.is_absolute()
    assert program.name == "kubelet"
    assert program.parent.parent == cache.cache_root() / "bin"


def test_a_marked_program_is_another_one_of_the_same_name() -> None:
    oldest, newest = pretend_built("kube-apiserver@1.34"), pretend_built("kube-apiserver")
    found = build.ensure(["kube-apiserver@1.34", "kube-apiserver"])
    assert found == {"kube-apiserver@1.34": oldest, "kube-apiserver": newest}
    assert oldest.name == newest.name == "kube-apiserver"
    assert oldest != newest


def test_an_unknown_name_is_refused_before_anything_is_built() -> None:
    with pytest.raises(build.UnknownNameError, match="did you mean 'kubelet'"):
        build.ensure(["etcd", "kublet"])
    assert not cache.cache_root().exists()


def test_the_header_is_handed_out_as_a_folder_to_search() -> None:
    header = pretend_built("header:nvml")
    assert header.name == "nvml.h"
    assert build.nvml_header_dir() == header.parent


def test_every_step_needs_only_what_can_be_built() -> None:
    steps = build.all_steps()
    assert {need for step in steps.values() for need in step.needs} <= steps.keys()
    assert len({step.target for step in steps.values()}) == len(steps)


def test_only_what_lies_in_the_scratch_folder_is_lost_with_the_build_caches() -> None:
    for step in build.all_steps().values():
        scratch = cache.scratch() in step.target.parents
        assert scratch == (step.name.startswith("modules of "))
        assert scratch or step.target.relative_to(cache.cache_root()).parts[0] in build.KEPT_KINDS


def test_an_image_is_named_by_what_is_in_it() -> None:
    reference = build.image_reference("kueue")
    assert reference.startswith("devcluster.test/kueue:")
    assert reference.removeprefix("devcluster.test/kueue:") in str(build.all_steps()["image:kueue"].target)
    with pytest.raises(build.UnknownNameError, match="did you mean 'image:kueue'"):
        build.image_reference("kueu")


def test_an_image_of_a_program_holds_it_where_its_manifest_expects_it() -> None:
    pretend_built("jobset")
    layout = build.ensure_image("jobset", report=lambda _: None)
    index = json.loads((layout / "index.json").read_text())
    blobs = layout / "blobs" / "sha256"
    manifest = json.loads((blobs / digest(layout).removeprefix("sha256:")).read_text())
    config = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_text())["config"]
    assert config["Entrypoint"] == ["/manager"]
    assert config["User"] == f"{images.NOBODY}:{images.NOBODY}"
    named = index["manifests"][0]["annotations"]["io.containerd.image.name"]
    assert named == build.image_reference("jobset")
    again = cache.cache_root() / "again"
    images.recipes()["jobset"].make(again, lambda *_, **__: None)
    assert digest(again) == digest(layout)


def test_pruning_drops_the_build_caches_and_keeps_what_is_built() -> None:
    kept = pretend_built("etcd")
    source = golang.module_cache() / "k8s.io" / "api@v0" / "doc.go"
    source.parent.mkdir(parents=True)
    source.write_bytes(b"x" * 100_000)
    assert build.prune() >= 100_000
    assert not cache.scratch().exists()
    assert kept.exists()


def test_pruning_waits_for_no_one_and_takes_nothing_away_from_a_build() -> None:
    source = golang.module_cache() / "file"
    source.parent.mkdir(parents=True)
    source.touch()
    with cache.locked(build.runner.BUILD_LOCK, shared=True):
        assert build.prune() == 0
    assert source.exists()


def test_the_command_lists_all_with_version_and_state(capsys: pytest.CaptureFixture[str]) -> None:
    pretend_built("etcd")
    assert command.main(["--list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    wanted = {name for name, step in build.all_steps().items() if step.pool is not Pool.DOWNLOAD}
    assert wanted <= lines.keys()
    assert golang.pinned("etcd").version("go.etcd.io/etcd/server/v3") in lines["etcd"]
    assert "bin/" in lines["etcd"]
    assert "not built; takes about" in lines["kubelet"]


def test_the_command_says_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["kublet"]) == 1
    assert "error: nothing called 'kublet' can be built; did you mean 'kubelet'?" in capsys.readouterr().err


def test_the_command_prints_where_things_are(capsys: pytest.CaptureFixture[str]) -> None:
    path = pretend_built("etcd")
    assert command.main(["etcd"]) == 0
    assert capsys.readouterr().out == f"etcd\t{path}\n"


def test_the_command_without_arguments_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 2
    assert "--list" in capsys.readouterr().out
