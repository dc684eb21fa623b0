"""Reading catalogs: files, folders, chart values; places and remedies; YAML's traps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.catalog.load import examine, examine_text, load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.errors import CatalogError, Finding, Severity

from .conftest import GONE, Edit, changed

HEAD = "apiVersion: gpu-workspaces/v1\nkind: Catalog\n"


def told(findings: tuple[Finding, ...]) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.line) for finding in findings]


def test_a_catalog_loads_in_its_explicit_form(clean_file: Path) -> None:
    catalog = load_catalog(clean_file)
    cpu = catalog.by_key["cpu", 1]
    assert cpu.storage.home is not None
    assert cpu.storage.home.size == 50 * 1024**3
    assert cpu.session.idle_timeout is not None
    assert list(cpu.questions["size"].options) == ["small", "large"]
    assert list(catalog.by_key["gpu-share", 1].questions) == ["image", "gpu"]


def test_all_mistakes_are_reported_at_once_with_their_places(tmp_path: Path) -> None:
    file = tmp_path / "catalog.yaml"
    file.write_text(
        HEAD
        + """\
images:
  base: {ref: "registry.example.com/base:1", displayName: Base}
pools:
  cpu: {nodeSelecter: {pool: cpu}}
profiles:
  - name: small
    version: 1
    displayName: Small
    images: [base]
    resources:
      cpu: 2
      memory: 8GB
  - name: large
    version: one
    displayName: Large
    images: [bsae]
    resources: {cpu: 2, memory: 8Gi, pool: cpu}
  - name: other
    version: 1
    displayName: Other
    images: [bsae]
    resources: {cpu: 2, memory: 8Gi, pool: cpu}
"""
    )
    with pytest.raises(CatalogError) as caught:
        load_catalog(file)
    errors = caught.value.errors
    assert [(f.code, f.line, f.path) for f in errors] == [
        ("image-without-digest", 4, "images.base.ref"),
        ("unknown-key", 6, "pools.cpu.nodeSelecter"),
        ("bad-quantity", 14, "profiles[0].resources.memory"),
        ("wrong-type", 16, "profiles[1].version"),
        ("unknown-image", 23, "profiles[2].images[0]"),
    ]
    assert all(f.file == str(file) and f.help for f in errors)
    assert "Did you mean nodeSelector?" in errors[1].help
    assert "Did you mean base?" in errors[4].help
    text = str(caught.value)
    assert "5 errors" in text
    assert f"{file}:14: error[bad-quantity] at profiles[0].resources.memory" in text


def test_a_reference_to_a_broken_entry_is_no_second_mistake(
    findings: Callable[[Edit], tuple[Finding, ...]],
) -> None:
    found = findings(
        {"images.base.ref": "NO", "pools.gpu-full.gpu.sharing": "none", "profiles.2.displayName": GONE}
    )
    assert sorted(f.code for f in found) == ["bad-image", "bad-value", "missing-key"]


@pytest.mark.parametrize(
    "edit",
    [
        {"defaults.access": ["nlp"]},
        {"defaults.storage.home.size": "50GB"},
        {"profiles.0.version": "1"},
        {"profiles.2.version": "3"},
        {"profiles.4.images": ["r.io/torch:1"]},
        {"optionSets.sizes.options.small.resources": 3},
    ],
)
def test_one_mistake_is_one_finding(findings: Callable[[Edit], tuple[Finding, ...]], edit: Edit) -> None:
    (finding,) = findings(edit)
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("edit", "remedy"),
    [
        ({"profiles.0.display_name": "x"}, "Did you mean displayName?"),
        ({"profiles.0.DisplayName": "x"}, "Did you mean displayName?"),
        ({"profiles.0.cpu": 2}, "It belongs one level down, into resources."),
        ({"profiles.0.idleTimeout": "1h"}, "It belongs one level down, into session."),
        ({"optionSets.sizes.options.small.custom": {}}, "It belongs further up, into optionSets.sizes."),
        ({"profiles.0.default": True}, "Write defaults: {profile: …}"),
        ({"profiles.0.kubespawner_override": {}}, "gpu-workspaces import"),
        ({"pools.gpu-full.gpu.geometry": {}}, "Known here: deviceClass, driver,"),
        ({"teams.nlp.quota.gpu": 4}, "Write nvidia.com/gpu, or gpuEquivalents."),
        ({"profiles.0.resources.storage": {}}, "It belongs further up, into profiles[0]."),
        ({"optionSet": {}}, "Did you mean optionSets?"),
        ({"profiles.0.zzz": 1}, "Known here: access,"),
        ({"images.torch.cuda": 12.1}, 'Put quotes around it: "12.1".'),
        ({"images.base.allowTag": "on"}, "Write true, without quotes."),
        ({"profiles.0.images": "base"}, "Write [base]."),
        ({"pools.gpu-full.gpu.sharing": "time_slicing"}, "Did you mean time-slicing?"),
        ({"profiles.0.name": "GPU (A100)"}, "Write gpu-a100."),
        ({"profiles.0.version": 1.0, "profiles.0.state": "Active"}, "Did you mean active?"),
        ({"teams.nlp.quota.`limits.nvidia.com/gpu`": 4}, "Write nvidia.com/gpu"),
        ({"pools.gpu-mig.gpu.geometry.`1g.10gb`": 1}, "Did you mean 1g.18gb?"),
        ({"profiles.3.resources.gpu.slice": "2g.36gb"}, "It is a slice of GH200 144GB."),
        ({"profiles.3.resources.gpu.slice": "1g.18gb.me"}, "Did you mean 1g.18gb+me?"),
        ({"profiles.3.resources.gpu.slice": "nvidia.com/mig-1g.18gb"}, "Did you mean 1g.18gb?"),
        ({"pools.gpu-mig.gpu.geometry": {"all-2g.35gb": 3}}, "Did you mean 2g.35gb?"),
        ({"pools.gpu-mig.gpu.product": "nvidia-h200"}, "capitals included"),
        ({"pools.gpu-mig.gpu.product": "NVIDIA H200"}, "Write NVIDIA-H200."),
        ({"profiles.0.resources.`nvidia.com/gpu`": 1}, "Write gpu: {pool: …, count: 1}"),
        ({"profiles.0.images": ["r.io/base:1"]}, "Write the reference into images"),
        ({"profiles.0.name": "Größe"}, "Write grosse."),
        ({"profiles.0.version": "v1"}, "Write 1, without quotes."),
        ({"pools.gpu-shared.gpu.replicas": "4"}, "Write 4, without quotes."),
        ({"profiles.0.resources.memory": 16}, "Say which unit: 16Gi or 16Mi."),
        ({"profiles.0.resources.memory": None}, "Give it a value, or leave out the key."),
        ({"pools.gpu-full.tolerations.0": "gpu"}, "A taint that workspaces of this pool accept"),
        ({"profiles.0.resources": GONE}, "What a workspace gets."),
        ({"profiles.0.resources": {"requests": {}}}, "Write cpu: {request: …, limit: …}"),
        ({"profiles.0.resources.mem": "8Gi"}, "Write memory."),
        ({"profiles.0.nodeSelector": {}}, "It belongs to a pool"),
        ({"defaults.storage.home.storageClass": "ssd"}, "Write class."),
        ({"profiles.0.price": 2.4}, "Write {perHour: …, currency: …}."),
        ({"profiles.0.resources.gpu": "gpu-full"}, "Write {pool: …}."),
        ({"profiles.0.access": ["nlp"]}, "Write {everyone: …, teams: …, groups: …, users: …}."),
        ({"teams.nlp.quota.pods": 3}, "Write servers."),
        ({"teams.nlp.quota.`nvidia.com/mig-1g.18gb+me`": 1}, "Write nvidia.com/mig-1g.18gb.me"),
        ({"teams.nlp.quota.`nvidia.com/gpus`": 1}, "Did you mean nvidia.com/gpu?"),
        ({"aliases.a": "gpu-ful"}, "Did you mean gpu-full?"),
        ({"aliases.a": "gpu-full@9"}, "gpu-full has gpu-full@2, gpu-full@3."),
        ({"aliases.a": "llm"}, "llm is an alias; write what it stands for: gpu-full@latest."),
        ({"profiles.1.replacedBy": "v3"}, "Write 3 for that version of the same profile"),
    ],
)
def test_remedies(findings: Callable[[Edit], tuple[Finding, ...]], edit: Edit, remedy: str) -> None:
    assert any(remedy in finding.help for finding in findings(edit))


def test_a_number_is_quoted_as_it_was_written() -> None:
    text = (
        HEAD + 'images:\n  x: {ref: "r.io/x:1", displayName: X, allowTag: true, cuda: 12.10}\nprofiles: []\n'
    )
    (finding,) = [f for f in examine_text(text).findings if f.code == "wrong-type"]
    assert finding.help == 'Put quotes around it: "12.10".'
    assert finding.line == 4


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: [1\nb: 2\n", "yaml-syntax", 2),
        ("a:\n\tb: 2\n", "yaml-syntax", 2),
        ("a: b: c\n", "yaml-syntax", 1),
        ("a: \x01\n", "yaml-syntax", None),
        ("[" * 2000, "yaml-syntax", 1),
        ("images: {}\nimages: {}\n", "yaml-duplicate-key", 2),
        ("profiles:\n  - version: 010\n", "yaml-number", 2),
        ("aliases: {a: no}\n", "yaml-ambiguous", 1),
        ("aliases: {a: 1:30}\n", "yaml-ambiguous", 1),
        ("aliases: {on: x}\n", "yaml-ambiguous", 1),
        ("aliases: {1.10: x}\n", "yaml-ambiguous", 1),
        ("profiles: !include x.yaml\n", "yaml-tag", 1),
        ("aliases: {a: !!int no}\n", "yaml-tag", 1),
        ("? [a]\n: b\n", "yaml-key", 1),
        ("aliases: {<<: 3}\n", "yaml-merge", 1),
        ("aliases: &a {b: *a}\n", "yaml-recursive", 1),
        ("aliases: {a: " + "[" * 50 + "]" * 50 + "}\n", "yaml-recursive", 1),
        ("- a\n", "not-a-catalog", 1),
        ("just text\n", "not-a-catalog", 1),
        ("# nothing\n", "not-a-catalog", None),
        ("hub: {}\ncustom: {other: 1}\n", "not-a-catalog", 1),
        ("hub: {}\ncustom:\n  gpuWorkspace: {kind: Catalog}\n", "not-a-catalog", 3),
        ("gpuWorkspaces: {kind: Catalog}\n", "not-a-catalog", 1),
    ],
)
def test_traps_of_yaml(text: str, code: str, line: int | None) -> None:
    examination = examine_text(text, "c.yaml")
    assert (code, line) in told(examination.findings)
    assert examination.catalog is None


def test_words_in_quotes_are_no_traps() -> None:
    text = HEAD + 'aliases: {"on": "no"}\nprofiles: []\n'
    assert [f.code for f in examine_text(text).findings] == ["unknown-profile", "nothing-offered"]


def test_dates_numbers_and_keys_are_read_as_meant(clean: dict[str, Any]) -> None:
    until = changed(clean, {})["profiles"][1]["until"]
    assert until == "2027-03-31"
    catalog = load_catalog(changed(clean, {"profiles.0.resources.memory": 1e10}))
    assert catalog.by_key["cpu", 1].resources.memory.request == 10**10


def test_anchors_and_merge_keys_work_and_keep_their_places() -> None:
    text = (
        HEAD
        + """\
images: {x: {ref: "r.io/x@sha256:%s", displayName: X}}
profiles:
  - &small
    name: small
    version: 1
    displayName: Small
    images: [x]
    resources: &amount {cpu: 2, memory: 8Gi}
    access: {everyone: true}
  - <<: *small
    name: large
    resources:
      <<: *amount
      memory: 8GB
"""
        % ("4" * 64)
    )
    (finding,) = [f for f in examine_text(text).findings if f.severity is Severity.ERROR]
    assert (finding.line, finding.path) == (16, "profiles[1].resources.memory")
    catalog = examine_text(text.replace("8GB", "16Gi")).catalog
    assert catalog is not None
    assert catalog.by_key["large", 1].resources.cpu.request == 2000
    assert catalog.by_key["large", 1].resources.memory.request == 16 * 1024**3


def test_a_folder_is_one_catalog(tmp_path: Path, clean: dict[str, Any], clean_file: Path) -> None:
    text = clean_file.read_text()
    head, _, profiles = text.partition("\nprofiles:\n")
    (tmp_path / "10-base.yaml").write_text(head + "\n")
    first, second = profiles.split("\n\n", maxsplit=1)
    (tmp_path / "20-cpu.yml").write_text(f"{HEAD}profiles:\n{first}\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "gpu.yaml").write_text(
        f"{HEAD}profiles:\n{second}\n---\n{HEAD}teams:\n  cv: {{groups: [cv]}}\n"
    )
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "copy.yaml").write_text(text)
    (tmp_path / "notes.txt").write_text("no catalog")
    catalog = load_catalog(tmp_path)
    whole = load_catalog(changed(clean, {"teams.cv": {"groups": ["cv"]}}))
    assert catalog == whole


def test_a_place_in_a_folder_names_the_file_and_the_index_there(tmp_path: Path) -> None:
    profile = "  - {name: %s, version: 1, displayName: X, images: [x], resources: {cpu: 1, memory: %s}}\n"
    image = 'images: {x: {ref: "r.io/x@sha256:%s", displayName: X}}\n' % ("5" * 64)
    (tmp_path / "a.yaml").write_text(f"{HEAD}{image}profiles:\n" + profile % ("one", "1Gi"))
    (tmp_path / "b.yaml").write_text(f"{HEAD}profiles:\n" + profile % ("two", "1GB"))
    (finding,) = [f for f in examine(tmp_path).findings if f.severity is Severity.ERROR]
    assert (finding.file, finding.line, finding.path) == (
        str(tmp_path / "b.yaml"),
        4,
        "profiles[0].resources.memory",
    )


def test_the_same_entry_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{HEAD}teams: {{x: {{groups: [x]}}}}\ndefaults: {{}}\nprofiles: []\n")
    (tmp_path / "b.yaml").write_text(f"{HEAD}teams: {{x: {{groups: [y]}}}}\ndefaults: {{}}\n")
    found = [f for f in examine(tmp_path).findings if f.code == "duplicate-entry"]
    assert [(f.path, f.line) for f in found] == [("teams.x", 3), ("defaults", 4)]
    assert all("a.yaml" in f.message for f in found)


def test_values_of_the_chart_carry_a_catalog(tmp_path: Path, clean_file: Path) -> None:
    body = "".join(f"    {line}\n" if line else "\n" for line in clean_file.read_text().splitlines())
    file = tmp_path / "values.yaml"
    above = "hub: {db: {type: sqlite-pvc}}\nsingleuser: {events: no}\ncustom:\n  gpuWorkspaces:\n"
    file.write_text(above + body)
    assert load_catalog(file) == load_catalog(clean_file)
    file.write_text(file.read_text().replace("memory: 8Gi, pool: cpu", "memory: 8GB, pool: cpu"))
    (finding,) = [f for f in examine(file).findings if f.severity is Severity.ERROR]
    assert finding.path == "custom.gpuWorkspaces.profiles[0].resources.memory"
    assert finding.line is not None
    assert "memory: 8GB" in file.read_text().splitlines()[finding.line - 1]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    assert [f.code for f in examine(tmp_path / "none.yaml").findings] == ["unreadable"]
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"kind: \xff\n")
    assert [f.code for f in examine(latin).findings] == ["unreadable"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert [f.code for f in examine(empty).findings] == ["not-a-catalog"]


def test_what_is_no_catalog_is_said_once_with_file_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    for text, remedy in (
        ("", "Let the file begin with"),
        ("- a\n", "Let the file begin with"),
        ("hub: {}\nsingleuser: {}\n", "under custom.gpuWorkspaces"),
        ("custom:\n  gpuWorkspace: {}\n", "Move custom.gpuWorkspace to custom.gpuWorkspaces."),
        ("a: *b\n", "Write the anchor (&name) above its use"),
        ("a: * b\n", "text that begins with * needs quotes"),
        ("a: !alias!x b\n", "Check indentation"),
    ):
        file.write_text(text)
        (finding,) = examine(file).findings
        assert finding.file == str(file)
        assert remedy in finding.help
    file.write_bytes("kind: Catalog\nname: Größe\n".encode("latin-1"))
    (finding,) = examine(file).findings
    assert (finding.line, finding.help) == (2, "Save the file in UTF-8.")


def test_findings_stand_in_the_order_of_the_file(clean_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        clean_file.read_text().replace("memory: 8Gi", "memory: 8GB").replace("@latest", "@newest")
    )
    lines = [f.line or 0 for f in examine(file).findings]
    assert lines == sorted(lines)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1Gi", "90m", "base"]),
)
KEYS = st.sampled_from(
    [
        *("images", "pools", "teams", "optionSets", "defaults", "aliases", "profiles", "name", "version"),
        *("resources", "gpu", "choices", "options", "storage", "home", "mounts", "access", "quota", "ref"),
        *("displayName", "cpu", "memory", "pool", "sharing", "geometry", "image", "requires"),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(KEYS, st.text(max_size=5)), inner, max_size=4)
    ),
    max_leaves=8,
)


def is_sound(findings: tuple[Finding, ...], catalog: Catalog | None) -> bool:
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    return failed == (catalog is None) and all(finding.message for finding in findings)


@settings(max_examples=100, deadline=None)
@given(data=st.dictionaries(st.one_of(KEYS, st.text(max_size=5), st.integers()), VALUES, max_size=6))
def test_any_mapping_is_a_catalog_or_a_catalog_error(data: dict[Any, Any]) -> None:
    examination = examine({"apiVersion": "gpu-workspaces/v1", "kind": "Catalog", **data})
    assert is_sound(examination.findings, examination.catalog)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_clean_catalog_with_anything_anywhere_never_crashes(
    clean: dict[str, Any], data: st.DataObject
) -> None:
    node: Any = (copy := changed(clean, {}))
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if not isinstance(node[key], dict | list) or data.draw(st.booleans()):
            node[key] = data.draw(VALUES)
            break
        node = node[key]
    examination = examine(copy)
    assert is_sound(examination.findings, examination.catalog)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=" \n\t:-{}[]&*!|>'\"%@`#,?<a1~", max_size=60))
def test_any_text_is_a_catalog_or_a_catalog_error(text: str) -> None:
    examination = examine_text(text)
    assert is_sound(examination.findings, examination.catalog)
