"""Each finding about a catalog, provoked by one change of a clean one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hub_ext.catalog.codes import Code
from hub_ext.catalog.load import examine
from hub_ext.catalog.model import Catalog, Profile, ProfileRef
from hub_ext.catalog.versions import pick
from hub_ext.errors import Finding

from .conftest import GONE, Edit

FAULTS = YAML(typ="safe").load(Path(__file__).with_name("faults.yaml"))
CASES = [(Code(fault["code"]), fault["at"], fault["change"]) for fault in FAULTS]

YAML_CODES = {
    Code.UNREADABLE,
    Code.NOT_A_CATALOG,
    Code.YAML_SYNTAX,
    Code.YAML_DUPLICATE_KEY,
    Code.YAML_NUMBER,
    Code.YAML_AMBIGUOUS,
    Code.YAML_TAG,
    Code.YAML_KEY,
    Code.YAML_MERGE,
    Code.YAML_RECURSIVE,
    Code.DUPLICATE_ENTRY,
}
"""Tested with the reading of files."""
LOCK_CODES = {Code.VERSION_CHANGED, Code.VERSION_REMOVED}
"""Tested with the lock."""


def test_there_is_nothing_to_say_against_the_clean_catalog(clean: dict[str, Any]) -> None:
    assert examine(clean).findings == ()


@pytest.mark.parametrize(("code", "path", "edit"), CASES, ids=[f"{code}-{path}" for code, path, _ in CASES])
def test_a_fault_is_found_where_it_is(
    findings: Callable[[Edit], tuple[Finding, ...]], code: Code, path: str, edit: Edit
) -> None:
    found = findings(edit)
    told = [(finding.code, finding.path) for finding in found]
    assert (code, path) in told
    for finding in found:
        assert finding.message
        assert finding.severity is Code(finding.code).severity
        assert finding.file is None


def test_each_code_has_a_rule_and_a_test() -> None:
    assert all(code.meaning for code in Code)
    assert {code for code, _, _ in CASES} | YAML_CODES | LOCK_CODES == set(Code)


def test_what_has_a_remedy_says_it(findings: Callable[[Edit], tuple[Finding, ...]]) -> None:
    without = {finding.code for _, _, edit in CASES for finding in findings(edit) if not finding.help}
    assert without <= {"image-unused", "pool-unused", "bad-name", "bad-value", "empty-text", "bad-quantity"}


@pytest.mark.parametrize(
    ("text", "promises"),
    [
        ("12 GB of GPU memory", True),
        ("VRAM: 12 GB", True),
        ("A quarter of a card (12 GB)", True),
        ("GPU with 7,5 GB", True),
        ("12 GB HBM", True),
        ("A 48 GB card that four people use at once", False),
        ("48 GB of GPU memory, shared by four", False),
        ("4 processors, 32 GB RAM and a shared GPU", False),
    ],
)
def test_only_memory_of_a_share_is_a_promise(
    findings: Callable[[Edit], tuple[Finding, ...]], text: str, promises: bool
) -> None:
    for place in ("profiles.4.description", "profiles.4.choices.size.options.one.description"):
        option = {"displayName": "One", "resources": {"cpu": 1}, "description": "", "storage": {}}
        size = {"profiles.4.choices.size": {"displayName": "Size", "options": {"one": option}}}
        told = [f.code for f in findings({**size, place: text})]
        assert (Code.SHARE_MEMORY_PROMISE in told) is promises


def lineage(clean: dict[str, Any], successors: list[int | None]) -> dict[str, Any]:
    """Give a catalog of versions 1, 2, …, each retired and replaced by the one named."""
    profile = {**clean["profiles"][0], "name": "old"}
    kept = [
        {**profile, "version": number, "state": "retired", **({"replacedBy": other} if other else {})}
        for number, other in enumerate(successors, start=1)
    ]
    return {**clean, "profiles": [*clean["profiles"], *kept]}


def test_a_circle_is_told_once_however_long_it_is_and_whoever_leads_into_it(clean: dict[str, Any]) -> None:
    # 1 leads into the circle 2 → 3 → … → 1000 → 2
    data = lineage(clean, [*range(2, 1001), 2])
    found = [f for f in examine(data).findings if f.code == Code.REPLACEMENT_CYCLE]
    (finding,) = found
    assert finding.path == f"profiles[{len(clean['profiles']) + 1}].replacedBy"
    assert "old@2 → old@3" in finding.message
    assert finding.message.endswith("old@1000 → old@2")
    assert len(finding.message) < 200


def test_each_circle_is_told(clean: dict[str, Any]) -> None:
    found = examine(lineage(clean, [2, 1, 3, 5, 1])).findings
    told = [f.message.partition(": ")[2] for f in found if f.code == Code.REPLACEMENT_CYCLE]
    assert told == ["old@1 → old@2 → old@1", "old@3 → old@3"]


def test_every_version_whose_chain_ends_nowhere_is_told(clean: dict[str, Any]) -> None:
    found = examine(lineage(clean, [2, 3, None])).findings
    assert [f.message for f in found if f.code == Code.REPLACEMENT_RETIRED] == [
        "old@1 is replaced by old@3, which is retired",
        "old@2 is replaced by old@3, which is retired",
    ]


def test_long_chains_are_walked_once(clean: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ProfileRef] = []

    def counted(catalog: Catalog, ref: ProfileRef, **more: Any) -> Profile | None:
        asked.append(ref)
        return pick(catalog, ref, **more)

    monkeypatch.setattr("hub_ext.catalog.rules.lifecycle.pick", counted)
    examine(lineage(clean, [*range(2, 201), 1]))
    assert len(asked) == len(set(asked)) <= 202


@pytest.mark.parametrize(
    "edit",
    [
        {"pools.gpu-mig.autoscaler": "cluster-autoscaler", "pools.gpu-mig.scaleUp": "5m"},
        {"pools.gpu-full.autoscaler": "karpenter"},
        {"profiles.2.storage.datasets.mountPath": "/home/jovyan/data", "defaults.storage.home": GONE},
        {"profiles.4.storage": {"sharedMemory": "1Gi"}},
        {
            "profiles.3.choices.slice.options.small.access": {"teams": ["nlp"]},
            "profiles.3.choices.size": {
                "displayName": "Size",
                "options": {
                    "one": {"displayName": "One", "requires": {"slice": ["small"]}},
                    "two": {"displayName": "Two"},
                },
            },
        },
    ],
)
def test_what_is_no_fault(findings: Callable[[Edit], tuple[Finding, ...]], edit: Edit) -> None:
    assert findings(edit) == ()


@pytest.mark.parametrize("state", ["hidden", "retired"])
def test_a_catalog_without_anything_on_the_page_is_told(clean: dict[str, Any], state: str) -> None:
    data = {**clean, "profiles": [{**clean["profiles"][0], "state": state}], "defaults": {}, "aliases": {}}
    assert Code.NOTHING_OFFERED in {finding.code for finding in examine(data).findings}


def test_before_a_suffix_is_offered_its_slice_has_the_plain_name(
    findings: Callable[[Edit], tuple[Finding, ...]],
) -> None:
    geometry = {"pools.gpu-mig.gpu.geometry.`1g.18gb`": 1, "pools.gpu-mig.gpu.geometry.`1g.18gb+me`": 1}
    (finding,) = findings(geometry)
    assert finding.message.startswith("device plugins before 0.20 offer 1g.18gb+me as nvidia.com/mig-1g.18gb")
    assert "nvidia.com/mig-1g.18gb.me" in finding.help
