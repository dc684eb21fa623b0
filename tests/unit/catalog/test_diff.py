"""What users will notice when a catalog changes."""

from datetime import date
from typing import Any

import pytest

from hub_ext.catalog.diff.catalogs import diff
from hub_ext.catalog.diff.changes import Change, Impact
from hub_ext.catalog.diff.report import markdown, plain
from hub_ext.catalog.load import load_catalog
from hub_ext.errors import Severity

from .conftest import GONE, Edit, changed

TODAY = date(2026, 11, 30)
B, N, M = Impact.BREAKING, Impact.NOTICEABLE, Impact.MINOR
DIGEST = "sha256:" + "7" * 64


def changes(clean: dict[str, Any], edit: Edit, base: Edit | None = None) -> tuple[Change, ...]:
    old = changed(clean, base or {})
    return diff(load_catalog(old), load_catalog(changed(old, edit)), today=TODAY)


def test_nothing_changed_is_nothing_noticed(clean: dict[str, Any]) -> None:
    assert changes(clean, {}) == ()
    assert "nothing" in markdown(())


def test_what_only_admins_see_is_not_noticed(clean: dict[str, Any]) -> None:
    assert changes(clean, {"pools.gpu-full.nodeSelector.pool": "other", "pools.cpu.scaleUp": "3m"}) == ()


CUDA = {"ref": f"r.io/t@{DIGEST}", "displayName": "PyTorch 3", "cuda": "14.0"}
NEWER = {"ref": f"r.io/t@{DIGEST}", "displayName": "PyTorch 2.12", "cuda": "13.1"}


HUGE = {"displayName": "64 GiB", "resources": {"memory": "64Gi"}}


@pytest.mark.parametrize(
    ("edit", "impact", "code", "words"),
    [
        ({"profiles.4": GONE}, B, "no-longer-starts", "no workspace “gpu-share”"),
        (
            {"profiles.0.state": "retired", "defaults.profile": GONE},
            B,
            "no-longer-starts",
            "no longer offered",
        ),
        ({"profiles.3.state": "deprecated"}, N, "deprecated", "without replacement"),
        ({"profiles.3.state": "hidden"}, N, "hidden", "no longer on the spawn page"),
        (
            {"profiles.3.state": "deprecated", "profiles.3.replacedBy": "gpu-full"},
            N,
            "moved",
            "start gpu-full@3",
        ),
        (
            {"profiles.2.access.teams": [], "profiles.2.access.users": ["ada"]},
            B,
            "access-lost",
            "teams that may no longer",
        ),
        ({"profiles.0.access": {"teams": ["nlp"]}}, B, "access-lost", "only nlp"),
        ({"profiles.2.access": {"everyone": True}}, M, "access-gained", "everyone"),
        ({"profiles.2.price.perHour": 3}, N, "price", "2.40 EUR per hour → 3.00 EUR per hour"),
        ({"profiles.2.price.perHour": 2}, M, "price", "→ 2.00 EUR"),
        ({"profiles.2.price": GONE}, M, "price", "→ none"),
        ({"images.torch": CUDA}, B, "cuda-major", "CUDA 13.0 → 14.0"),
        ({"images.torch": NEWER}, N, "image", "PyTorch 2.12"),
        ({"profiles.4.images": ["torch"]}, N, "image-removed", "base"),
        ({"profiles.1.resources.cpu.limit": 8, "profiles.2.resources.cpu.limit": 8}, N, "cpu", "16 → 8"),
        ({"profiles.2.resources.memory.limit": "128Gi"}, M, "memory", "96 GiB → 128 GiB"),
        ({"profiles.2.resources.memory.request": "32Gi"}, N, "memory", "64 GiB → 32 GiB"),
        ({"profiles.2.resources.gpu": GONE, "profiles.2.resources.pool": "cpu"}, B, "gpu-kind", "→ none"),
        ({"profiles.3.resources.gpu.slice": "3g.71gb"}, B, "gpu-kind", "1g.18gb → NVIDIA-H200, mig 3g.71gb"),
        ({"pools.gpu-shared.gpu.replicas": 8}, B, "gpu-kind", "of 4 → NVIDIA-L40S, time-slicing of 8"),
        ({"profiles.2.resources.gpu.count": 2}, M, "gpu-count", "1 → 2"),
        ({"defaults.storage.home.mountPath": "/home/user"}, B, "home-path", "/home/jovyan to /home/user"),
        ({"defaults.storage.home": None}, B, "home", "gone"),
        ({"defaults.storage.home": {"claim": "homes", "subPath": "{user}"}}, B, "home", "another volume"),
        ({"defaults.storage.home.size": "40Gi"}, N, "home-size", "50 GiB → 40 GiB: existing volumes"),
        ({"defaults.storage.home.size": "60Gi"}, M, "home-size", "→ 60 GiB"),
        ({"profiles.2.storage.scratch": GONE}, N, "scratch", "gone"),
        ({"profiles.2.storage.scratch.sizeLimit": "100Gi"}, N, "scratch", "500 GiB → 100 GiB"),
        ({"profiles.2.storage.datasets": GONE}, B, "mount", "datasets at /data is gone"),
        ({"profiles.2.storage.datasets.mountPath": "/datasets"}, B, "mount-path", "/data to /datasets"),
        ({"profiles.2.storage.checkpoints.env": "CKPT"}, B, "checkpoints", "CKPT"),
        ({"profiles.2.storage.checkpoints.uri": "s3://c/"}, N, "checkpoints", "not moved"),
        ({"profiles.2.storage.sharedMemory": "8Gi"}, N, "shared-memory", "16 GiB → 8 GiB"),
        ({"defaults.session.maxDuration": "6h"}, N, "session", "12h → 6h"),
        ({"defaults.session.maxDuration": "24h"}, M, "session", "12h → 1d"),
        ({"profiles.0.security": {"networkProfile": "strict"}}, N, "security", "network profile"),
        ({"profiles.0.choices": GONE}, N, "choice", "Size"),
        (
            {"profiles.0.choices.size": {"optionSet": "sizes", "only": ["small"]}},
            N,
            "option",
            "32 GiB: no longer",
        ),
        (
            {"optionSets.sizes.options.large.resources.memory": "16Gi"},
            N,
            "memory",
            "Size, 32 GiB: memory limit",
        ),
        (
            {"profiles.3.choices.slice.default": "medium"},
            N,
            "option",
            "preselected One seventh → Two sevenths",
        ),
        (
            {"profiles.3.choices.slice.options.medium.access": {"teams": ["nlp"]}},
            B,
            "access-lost",
            "only nlp",
        ),
        (
            {"profiles.3.choices.slice.options.medium.image": "base"},
            B,
            "cuda-major",
            "Two sevenths: the image",
        ),
        (
            {"profiles.3.choices.slice.options.medium.storage": {"home": {"mountPath": "/h"}}},
            B,
            "home-path",
            "Two sevenths: the home moves",
        ),
        (
            {"profiles.3.choices.slice.options.small.requires": {"slice": ["small"]}},
            N,
            "option",
            "One seventh: goes only with slice: small",
        ),
        ({"optionSets.sizes.options.large.price.perHour": 0.5}, N, "price", "Size, 32 GiB: price: 0.40 EUR"),
        ({"optionSets.sizes.options.huge": HUGE}, M, "option", "Size, 64 GiB: is added"),
        ({"profiles.2.choices": {"size": "sizes"}}, M, "choice", "Size: can be chosen"),
        ({"teams.nlp.quota.gpuEquivalents": 4}, N, "quota", "6 → 4"),
        ({"teams.nlp.perUser.cpu": 20}, N, "quota", "no bound → 20"),
        ({"quota.servers": 100}, N, "quota", "200 → 100"),
        ({"teams.nlp.groups": ["nlp2"]}, B, "team", "nlp"),
        ({"profiles.3.displayName": "Part of a card"}, M, "renamed", "Part of a card instead of"),
        ({"aliases": GONE}, B, "alias", "gone"),
        ({"aliases.llm": "gpu-part"}, N, "alias", "gpu-part@recommended"),
        ({"defaults.profile": "gpu-part"}, M, "default-profile", "gpu-part"),
    ],
)
def test_what_is_noticed(clean: dict[str, Any], edit: Edit, impact: Impact, code: str, words: str) -> None:
    found = changes(clean, edit)
    assert any((c.impact, c.code) == (impact, code) and words in c.message for c in found), plain(found)


def test_what_changes_for_the_profile_is_not_said_again_for_each_option(clean: dict[str, Any]) -> None:
    (change,) = changes(clean, {"profiles.3.storage": {"workDir": "/home/jovyan/work"}})
    assert change.message.startswith("JupyterLab opens in /home/jovyan/work")


def test_an_earlier_last_day_is_noticed(clean: dict[str, Any]) -> None:
    base = {"profiles.1.replacedBy": GONE}
    (change,) = changes(clean, {"profiles.1.until": "2027-01-31"}, base)
    assert (change.impact, change.code) == (N, "deprecated")
    assert "until 2027-01-31" in change.message
    assert changes(clean, {"profiles.1.until": "2027-12-31"}, base) == ()


def test_a_team_written_out_as_its_groups_loses_nothing(clean: dict[str, Any]) -> None:
    assert changes(clean, {"profiles.2.access": {"groups": ["nlp"]}}) == ()
    assert (
        changes(clean, {"profiles.2.access": {"teams": ["nlp"]}}, {"profiles.2.access": {"groups": ["nlp"]}})
        == ()
    )
    (change,) = changes(clean, {"profiles.2.access": {"groups": ["nlp"]}}, {"teams.nlp.users": ["ada"]})
    assert (change.impact, change.code) == (B, "access-lost")


def test_typed_images_that_are_refused_from_now_on_are_noticed(clean: dict[str, Any]) -> None:
    choice = {
        "displayName": "Image",
        "options": {"base": {"displayName": "Base", "image": "base"}},
        "custom": {"registries": ["r.io", "s.io/x"], "allowTag": True},
    }
    base = {"profiles.0.choices.image": choice}
    told = [
        c.message
        for edit in (
            {"profiles.0.choices.image.custom.registries": ["r.io"]},
            {"profiles.0.choices.image.custom.allowTag": False},
            {"profiles.0.choices.image.custom": GONE},
        )
        for c in changes(clean, edit, base)
    ]
    assert told == [
        "Image: images can no longer come from s.io/x",
        "Image: a typed image needs a digest",
        "Image: an image can no longer be typed",
    ]


def test_a_new_version_is_compared_with_what_it_takes_over(clean: dict[str, Any]) -> None:
    second = {
        **clean["profiles"][3],
        "version": 2,
        "resources": {"cpu": 2, "memory": "16Gi", "gpu": {"pool": "gpu-mig", "slice": "1g.18gb"}},
    }
    found = changes(
        clean, {"profiles.3.state": "deprecated", "profiles.3.replacedBy": 2, "profiles.5": second}
    )
    told = {(c.subject, c.code): c.message for c in found}
    assert told["gpu-part@1", "moved"] == "saved choices start gpu-part@2 from now on"
    assert ("gpu-part@1 → gpu-part@2", "cpu") in told
    assert told["gpu-part", "recommended"] == "the name alone means version 2 instead of 1"
    assert ("gpu-part@2", "added") in told


def test_the_worst_comes_first_and_is_an_error(clean: dict[str, Any]) -> None:
    found = changes(clean, {"defaults.storage.home.mountPath": "/x", "profiles.2.price.perHour": 3})
    severities = [change.finding().severity for change in found]
    assert severities[0] is Severity.ERROR
    assert severities == sorted(severities, key=list(Severity).index)


def test_markdown_groups_by_impact_and_escapes_what_admins_wrote(clean: dict[str, Any]) -> None:
    edit = {"profiles.4.images": ["torch"], "profiles.3.displayName": "<b>", "profiles.3.state": "hidden"}
    base = {"optionSets.sizes.options.large.displayName": "`<img src=x>` *big*"}
    text = markdown(changes(clean, {**edit, "optionSets.sizes.options.large": GONE}, base))
    assert "#### Users will notice" in text
    assert "- `cpu@1`" in text
    assert "\\<img src=x\\>" in text
    assert "<" not in text.replace("\\<", "")


def test_a_text_with_line_feeds_stays_on_its_line(clean: dict[str, Any]) -> None:
    name = "A\n\n# Approved\n- [x] ~~b~~ &lt;"
    found = changes(
        clean, {"optionSets.sizes.options.large": GONE}, {"optionSets.sizes.options.large.displayName": name}
    )
    (line,) = [line for line in markdown(found).splitlines() if "Approved" in line]
    assert line.startswith("  - Size, A \\# Approved - \\[x\\] \\~\\~b")
    assert len(plain(found).splitlines()) == len(found)
