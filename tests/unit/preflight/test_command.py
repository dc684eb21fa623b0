"""`gpu-workspaces preflight`: files in, table and JSON out; a live cluster is read and never changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hub_ext.cli import main
from services.kube import UnavailableError
from services.preflight.checks import CHECKS
from services.preflight.checks.gpus import ENVVAR, devices_by_variable, single_shares
from services.preflight.gather import look, measure, read_dump, save
from services.preflight.kinds import KINDS, resource_of
from services.preflight.scene import Objects
from services.prometheus import Prometheus
from tests.fakes.kube import FakeKube
from tests.fakes.prometheus import FakePrometheus
from tests.unit.preflight.scenes import CATALOG, METRICS, OBJECTS, VALUES, scene, thing

PAGE = (Path(__file__).parents[3] / "services" / "preflight" / "REFERENCE.md").read_text(encoding="utf-8")


def with_versions() -> list[dict]:
    """The objects as a cluster has them: with the version of their group."""
    groups = {}
    for kind, path in KINDS.items():
        parts = path.strip("/").split("/")
        groups[kind] = "v1" if parts[0] == "api" else f"{parts[1]}/{parts[2]}"
    return [{"apiVersion": groups[kind], **one} for kind, items in OBJECTS.items() for one in items]


@pytest.fixture
def dump(tmp_path):
    folder = tmp_path / "dump"
    folder.mkdir()
    for kind, items in OBJECTS.items():
        text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items})
        (folder / f"{resource_of(kind)}.json").write_text(text)
    return folder


@pytest.fixture
def values(tmp_path):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({**VALUES, "custom": {"gpuWorkspaces": CATALOG}}))
    return file


def run(capsys, *arguments):
    status = main(["preflight", "--json", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, json.loads(printed.out)


def rights_asked(data):
    """Parts whose missing rights are told."""
    return {one["message"].split()[0] for one in data["findings"] if one["code"] == "rights"}


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"idle-culler": {}, "a-service-of-somebody-else": {}}, {"idle-culler"}),
        ({}, set()),
        ("no mapping", set()),
    ],
)
def test_services_are_those_of_the_values_unless_named(capsys, tmp_path, dump, given, asked):
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"hub": {"services": given}}))
    for kind in ("roles", "clusterroles", "rolebindings", "clusterrolebindings"):
        (dump / f"{kind}.json").unlink(missing_ok=True)
    asking = ("--cluster", dump, "--complete", "--values", values)
    assert rights_asked(run(capsys, *asking)[1]) == asked | {"hub"}
    assert rights_asked(run(capsys, *asking, "--service", "prepuller")[1]) == {"hub", "prepuller"}


def outcomes(data):
    return {one["check"]: one["outcome"] for one in data["result"]["checks"]}


def test_every_check_is_told(capsys, dump, values):
    status, data = run(capsys, "--cluster", dump, "--values", values)
    assert status == 1  # the hub's own rights are nowhere granted
    found = outcomes(data)
    assert set(found) == {check.code for check in CHECKS}
    assert found["resource-offered"] == "passed"
    assert found["exporter-fields"] == "not-checked"
    assert {one["code"] for one in data["findings"]} == {"rights"}
    assert all(one["evidence"] and one["link"] and one["help"] for one in data["findings"])


def test_values_alone_can_be_checked(capsys, values):
    status, data = run(capsys, "--offline", "-f", values)
    assert status == 0
    assert outcomes(data)["pool-nodes"] == "not-checked"
    assert outcomes(data)["one-culler"] == "passed"


def test_a_kind_that_no_file_has_is_unknown_unless_the_dump_is_whole(capsys, tmp_path, values):
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"kind": "List", "items": OBJECTS["Node"]}))
    _, part = run(capsys, "--cluster", nodes, "-f", values)
    assert outcomes(part)["claims"] == "not-checked"
    _, whole = run(capsys, "--cluster", nodes, "--complete", "-f", values)
    assert outcomes(whole)["claims"] == "failed"


def test_later_values_win_and_empty_maps_are_told(capsys, tmp_path, values):
    later = tmp_path / "later.yaml"
    later.write_text("cull: {enabled: true}\nsingleuser: {extraResource: {limits: {}}}\n")
    _, data = run(capsys, "--offline", "-f", values, "-f", later)
    assert outcomes(data)["one-culler"] == "failed"
    assert outcomes(data)["empty-map"] == "warned"


def test_people_get_a_table(capsys, dump, values):
    main(["preflight", "--cluster", str(dump), "--values", str(values)])
    printed = capsys.readouterr()
    assert "ok           resource-offered" in printed.out
    assert "not checked  exporter-fields" in printed.out
    assert printed.out.index("not checked  exporter-fields") < printed.out.index("FAILED       rights ")
    assert "error[rights]" in printed.out
    assert "seen: " in printed.out
    assert printed.out.rstrip().splitlines()[-1].endswith("not checked")
    assert printed.err == ""


@pytest.mark.parametrize(
    ("text", "said"), [("- a\n", "keys and values"), ("a: [\n", "values.yaml"), ("custom: 3\n", "")]
)
def test_values_that_are_none_are_told(capsys, tmp_path, text, said):
    file = tmp_path / "values.yaml"
    file.write_text(text)
    status = main(["preflight", "--offline", "-f", str(file)])
    assert (status == 2) is bool(said)
    assert said in capsys.readouterr().err


def test_a_broken_catalog_is_told_as_validate_tells_it(capsys, tmp_path):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"custom": {"gpuWorkspaces": {**CATALOG, "profilez": []}}}))
    assert main(["preflight", "--offline", "-f", str(file)]) != 0
    assert "profilez" in capsys.readouterr().err


EMPTY = '{"kind": "List", "apiVersion": "v1", "items": []}'


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "nothing that a check looks at"),
        ({"notes.txt": "pods"}, "nothing that a check looks at"),
        ({"deployments.json": EMPTY}, "nothing that a check looks at"),
        ({"pods.json": ""}, "pods.json: it is empty"),
        ({"pods.json": "\n"}, "pods.json: it is empty"),
        ({"pods.yaml": "# none\n"}, "pods.yaml: it is empty"),
        ({"nodes.json": json.dumps({"items": OBJECTS["Node"]})[:-90]}, "nodes.json: neither JSON nor YAML"),
        ({"pods.json": "Error from server (Forbidden)"}, "pods.json: not what `kubectl get"),
        ({"pods.json": "[]"}, "pods.json: not what `kubectl get"),
        ({"pods.json": '{"items": [{"metadata": {}}]}'}, "pods.json: not what `kubectl get"),
    ],
    ids=["no files", "others", "other kinds", "0 bytes", "a line", "comment", "cut", "error", "list", "raw"],
)
@pytest.mark.parametrize("option", [(), ("--complete",)], ids=["", "complete"])
def test_a_dump_that_is_none_is_told(capsys, tmp_path, files, said, option):
    """A file that a failed `kubectl get` left must not pass for a cluster without objects."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert main(["preflight", "--cluster", str(tmp_path), *option]) == 2
    assert said in capsys.readouterr().err


def test_a_cluster_without_pods_is_none_without_a_look(capsys, tmp_path):
    (tmp_path / "pods.json").write_text(EMPTY)
    _, data = run(capsys, "--cluster", tmp_path)
    assert outcomes(data)["host-access"] == "passed"
    assert outcomes(data)["claims"] == "not-checked"


def test_a_dump_of_ten_thousand_claims_is_read(capsys, tmp_path):
    claims = [
        thing("PersistentVolumeClaim", f"claim-{n}", "jupyterhub", spec={"accessModes": ["ReadWriteOnce"]})
        for n in range(10_000)
    ]
    (tmp_path / "persistentvolumeclaims.json").write_text(json.dumps({"kind": "List", "items": claims}))
    _, data = run(capsys, "--cluster", tmp_path)
    assert outcomes(data)["one-home"] == "passed"


async def test_a_live_cluster_is_listed_and_nothing_else():
    fake = FakeKube(*with_versions())
    objects, denied = await look(fake)
    assert {verb for verb, _ in fake.calls} == {"list"}
    assert {path for _, path in fake.calls} == set(KINDS.values())
    assert denied == {}
    assert len(objects.of("Node")) == 3
    assert objects.of("Node")[0]["kind"] == "Node"


async def test_what_may_not_be_seen_is_not_taken_for_empty():
    fake = FakeKube(*with_versions(), rights=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
    objects, denied = await look(fake)
    assert objects.seen("Node")
    assert not objects.seen("Pod")
    assert "Pod" in denied


async def test_a_cluster_that_does_not_answer_is_an_error():
    fake = FakeKube()
    fake.fail_for_test(*[UnavailableError("down", kind="nodes")] * len(KINDS))
    with pytest.raises(UnavailableError):
        await look(fake)


def test_without_a_cluster_it_says_how_to_name_one(capsys, monkeypatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    assert main(["preflight"]) == 2
    assert "KUBECONFIG" in capsys.readouterr().err


def test_the_cluster_of_kubectl_is_looked_at_where_none_is_named(capsys, monkeypatch, tmp_path):
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("clusters: nowhere")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["preflight"]) == 2
    assert "Service host/port" not in capsys.readouterr().err


async def test_what_is_saved_can_be_read_and_holds_no_tokens(tmp_path):
    token = {"name": "notebook", "env": [{"name": "JUPYTERHUB_API_TOKEN", "value": "very-secret"}]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "jupyter-ada", "namespace": "jupyterhub", "managedFields": [{}]},
        "spec": {"containers": [token]},
    }
    objects, _ = await look(FakeKube(*with_versions(), pod))
    save(objects, tmp_path / "kept")
    text = "".join(file.read_text() for file in (tmp_path / "kept").iterdir())
    assert "very-secret" not in text
    assert "managedFields" not in text
    again = read_dump([tmp_path / "kept"], complete=False)
    assert {kind: len(again.of(kind)) for kind in KINDS} == {kind: len(objects.of(kind)) for kind in KINDS}
    assert again.seen("ResourceSlice")


SECRET = {"name": "c", "env": [{"name": "T", "value": "very-secret"}], "args": ["--token=very-secret"]}
PLUGIN = "password: very-secret\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"
COPY = {"kubectl.kubernetes.io/last-applied-configuration": "very-secret"}


@pytest.mark.parametrize(
    "item",
    [
        thing("ConfigMap", "c", "x", data={"password": "very-secret"}, binaryData={"p": "very-secret"}),
        thing("ConfigMap", "c", "x", data={"any": PLUGIN}),
        thing("DaemonSet", "d", "x", spec={"template": {"spec": {"containers": [SECRET]}}}),
        thing("Pod", "p", "x", spec={"containers": [], "ephemeralContainers": [SECRET]}),
        thing("ClusterPolicy", "p", spec={"toolkit": {"env": SECRET["env"]}}),
        thing("Node", "n", metadata={"annotations": COPY}),
    ],
    ids=["configuration", "plugin", "template", "ephemeral", "operator", "last-applied"],
)
def test_secrets_are_kept_out_wherever_they_stand(tmp_path, item):
    save(Objects({item["kind"]: [item]}), tmp_path)
    (file,) = tmp_path.iterdir()
    assert "very-secret" not in file.read_text()
    (again,) = read_dump([tmp_path], complete=False).of(item["kind"])
    assert again["metadata"]["name"] == item["metadata"]["name"]


@pytest.mark.parametrize("wrong", [PLUGIN, None], ids=["shares", "variable"])
def test_what_checks_read_is_kept(tmp_path, wrong):
    answer = {"name": ENVVAR, "value": "false"}
    cdi = {"cdi": {"enabled": False}, "toolkit": {"env": [answer] if wrong else []}}
    objects = Objects(
        {
            "ConfigMap": [thing("ConfigMap", "c", "x", data={"any": wrong} if wrong else {})],
            "ClusterPolicy": [thing("ClusterPolicy", "p", spec=cdi)],
            "Node": [thing("Node", "n", metadata={"labels": {"env": "prod"}})],
        }
    )
    save(objects, tmp_path)
    again = read_dump([tmp_path], complete=False)
    assert again.of("Node") == objects.of("Node")
    for check in (single_shares, devices_by_variable):
        told = [list(check(replace(scene(), objects=one))) for one in (objects, again)]
        assert told[0] == told[1]
        assert bool(told[0]) is (bool(wrong) is (check is single_shares))


async def test_prometheus_says_what_it_has():
    fake = FakePrometheus()
    names = [({"__name__": name}, 8.0) for name in METRICS.fields]
    fake.put_part("count by (__name__)", *names)
    fake.put_part('{exported_pod!=""', ({}, 8.0))
    async with Prometheus(fake.URL, transport=fake.transport) as prometheus:
        assert await measure(prometheus) == METRICS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_checks_have_a_section(check):
    assert f"\n### {check.code}\n\n{check.title}.\n" in PAGE


def test_the_page_says_how_to_write_a_dump():
    for kind in KINDS:
        assert resource_of(kind) in PAGE


def test_the_page_is_what_the_code_says():
    from services.preflight.page import BEGIN, page

    assert BEGIN + PAGE.partition(BEGIN)[2] == page(), "write it anew: python -m services.preflight.page"
