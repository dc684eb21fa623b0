"""Published versions do not change."""

from pathlib import Path
from typing import Any

import pytest

from hub_ext.catalog.load import examine, lock_path
from hub_ext.catalog.lock import check_lock, format_lock, lock_of, parse_lock, publish
from hub_ext.errors import BadValueError

from .conftest import GONE, Edit, changed


def told(clean: dict[str, Any], edit: Edit) -> list[tuple[str, str]]:
    """Publish the clean catalog, change it, and give what is said."""
    published, after = examine(clean).catalog, examine(changed(clean, edit)).catalog
    assert published is not None
    assert after is not None
    return [(p.code, p.message) for p in check_lock(after, lock_of(published))]


@pytest.mark.parametrize(
    "edit",
    [
        {"profiles.0.displayName": "Other words", "profiles.0.description": "More words"},
        {"profiles.0.state": "deprecated", "profiles.0.replacedBy": "gpu-part", "profiles.0.message": "x"},
        {"profiles.2.access": {"users": ["ada"]}, "profiles.2.price.perHour": 3},
        {"pools.gpu-full.nodeSelector.pool": "elsewhere", "pools.gpu-full.gpu.driver": "590.1"},
        {"images.torch.displayName": "Torch", "images.torch.pullSecrets": ["other"]},
        {"profiles.0.resources.cpu": {"request": "2000m", "limit": 2.0}},
        {"profiles.2.storage.datasets.readOnly": True, "profiles.0.resources.memory": "8192Mi"},
        {
            "optionSets.sizes.options.small.displayName": "S",
            "optionSets.other": {"displayName": "O", "options": {"a": {"displayName": "A"}}},
        },
    ],
)
def test_words_lifecycle_policy_and_spelling_may_change(clean: dict[str, Any], edit: Edit) -> None:
    assert told(clean, edit) == []


@pytest.mark.parametrize(
    ("edit", "label", "part"),
    [
        ({"profiles.0.resources.memory": "9Gi"}, "cpu@1", "resources"),
        ({"optionSets.sizes.options.large.resources.cpu": 9}, "cpu@1", "choices"),
        ({"images.base.ref": "registry.example.com/base@sha256:" + "8" * 64}, "cpu@1", "images"),
        ({"profiles.3.resources.gpu.slice": "2g.35gb"}, "gpu-part@1", "resources"),
        ({"pools.gpu-shared.gpu.replicas": 8}, "gpu-share@1", "resources"),
        (
            {"pools.gpu-full.gpu.product": "NVIDIA-B200", "pools.gpu-full.nodeSelector": {"p": "x"}},
            "gpu-full@3",
            "resources",
        ),
        ({"profiles.2.storage.home": {"mountPath": "/home/user"}}, "gpu-full@3", "storage"),
        ({"defaults.session.idleTimeout": "1h"}, "cpu@1", "session"),
        ({"profiles.0.security": {"networkProfile": "open"}}, "cpu@1", "security"),
        ({"profiles.0.environment": {"A": "1"}}, "cpu@1", "environment"),
        ({"profiles.0.labels": {"a": "b"}}, "cpu@1", "metadata"),
    ],
)
def test_what_a_user_gets_may_not_change(clean: dict[str, Any], edit: Edit, label: str, part: str) -> None:
    assert ("version-changed", f"{label} is published and was changed: {part}") in told(clean, edit)


def test_a_change_names_the_version_to_add(clean: dict[str, Any]) -> None:
    published, after = (
        examine(clean).catalog,
        examine(changed(clean, {"profiles.1.resources.cpu": 1})).catalog,
    )
    assert published is not None
    assert after is not None
    (problem,) = check_lock(after, lock_of(published))
    assert "add version 4" in problem.help
    assert problem.loc == ("profiles", 1)


def test_a_published_version_may_not_go(clean: dict[str, Any]) -> None:
    edit = {"profiles.4": GONE}
    assert told(clean, edit) == [("version-removed", "gpu-share@1 is published and is gone")]


def test_publishing_adds_and_never_alters(clean: dict[str, Any]) -> None:
    first, second = (
        examine(clean).catalog,
        examine(changed(clean, {"profiles.0.resources.memory": "9Gi"})).catalog,
    )
    assert first is not None
    assert second is not None
    lock = publish(first, {})
    assert publish(second, lock) == lock
    without = {label: parts for label, parts in lock.items() if label != "cpu@1"}
    assert publish(second, without)["cpu@1"] != lock["cpu@1"]


def test_a_lock_reads_back_in_a_stable_order(clean: dict[str, Any]) -> None:
    catalog = examine(clean).catalog
    assert catalog is not None
    text = format_lock(lock_of(catalog))
    assert parse_lock(text) == lock_of(catalog)
    assert format_lock(dict(reversed(list(parse_lock(text).items())))) == text
    labels = [line.partition(":")[0] for line in text.splitlines() if not line.startswith("#")]
    assert labels == ["cpu@1", "gpu-full@2", "gpu-full@3", "gpu-part@1", "gpu-share@1"]


@pytest.mark.parametrize("text", ["a: [", "- x", "cpu@1: 3", "cpu@1: {images: 3}", 'cpu: {images: "3"}'])
def test_what_is_no_lock_is_said(text: str) -> None:
    with pytest.raises(BadValueError, match="not") as caught:
        parse_lock(text)
    assert "version control" in caught.value.help


def test_two_branches_that_publish_are_told_apart() -> None:
    ours, theirs = 'cpu@2: {images: "1"}\n', 'gpu@2: {images: "2"}\n'
    with pytest.raises(BadValueError, match="conflict is left in line 2") as caught:
        parse_lock(f"# head\n<<<<<<< ours\n{ours}=======\n{theirs}>>>>>>> theirs\n")
    assert "both sides" in caught.value.help
    assert set(parse_lock(ours + theirs)) == {"cpu@2", "gpu@2"}
    with pytest.raises(BadValueError, match="cpu@2 stands here twice"):
        parse_lock(ours + theirs.replace("gpu", "cpu"))


def test_a_lock_beside_the_catalog_is_held_against_it(clean_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "catalog.yaml"
    file.write_text(clean_file.read_text())
    catalog = examine(file).catalog
    assert catalog is not None
    lock_path(file).write_text(format_lock(lock_of(catalog)))
    assert examine(file).findings == ()
    assert lock_path(tmp_path) == lock_path(file)

    file.write_text(file.read_text().replace("memory: 8Gi, pool: cpu", "memory: 9Gi, pool: cpu"))
    (finding,) = examine(file).findings
    assert finding.code == "version-changed"
    assert finding.line is not None
    assert "name: cpu" in file.read_text().splitlines()[finding.line - 1]

    lock_path(file).write_text("<<<<<<< ours\n")
    (finding,) = examine(file).findings
    assert (finding.code, finding.file, finding.path) == ("unreadable", str(lock_path(file)), "")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("replacedBy: 3", "replacedBy: 3", {"version-changed"}),
        ("replacedBy: 3", "replacedBy: 2", {"replacement-cycle", "version-changed"}),
        ("displayName: Small machine", "displayName: Small machine\n    colour: red", {"unknown-key"}),
        ("pool: cpu}\n    choices", "pool: cup}\n    choices", {"unknown-pool"}),
        ("{size: sizes}", "{size: sizzes}", {"unknown-option-set"}),
    ],
)
def test_an_error_elsewhere_hides_no_change_and_what_cannot_be_read_is_none(
    clean_file: Path, tmp_path: Path, old: str, new: str, told: set[str]
) -> None:
    file = tmp_path / "catalog.yaml"
    file.write_text(clean_file.read_text())
    catalog = examine(file).catalog
    assert catalog is not None
    lock_path(file).write_text(format_lock(lock_of(catalog)))
    file.write_text(
        file.read_text().replace("cpu: 2, memory: 8Gi, pool", "cpu: 3, memory: 8Gi, pool").replace(old, new)
    )
    assert {finding.code for finding in examine(file).errors} == told
