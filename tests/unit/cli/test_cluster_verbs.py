"""`quota` and `phases`: the judgements of the hub, asked with files in place of a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hub_ext.cli.app import main
from hub_ext.cluster.starts import Outcome, StartRecord
from tests.unit.cluster.objects import (
    GPU,
    NOW,
    at,
    condition,
    container_status,
    make_event,
    make_node,
    make_pod,
)

CATALOG = Path(__file__).parents[2] / "golden" / "catalog.yaml"
TEAM = "gpu-workspaces.jupyter.org/team"
POOL = "gpu-workspaces.jupyter.org/pool"
ADA = ("--user", "ada", "--groups", "nlp", "--profile", "gpu-full", "--on", "2026-11-30")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: object) -> tuple[int, str, str]:
        status = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def cluster(tmp_path: Path) -> Callable[..., Path]:
    """Write objects as `kubectl get -o json` does."""

    def write(*items: tuple[str, dict[str, Any]]) -> Path:
        path = tmp_path / "cluster.json"
        objects = [{"apiVersion": "v1", "kind": kind, **item} for kind, item in items]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return path

    return write


def pod_of(user: str, **more: Any) -> tuple[str, dict[str, Any]]:
    labels = {TEAM: "nlp", POOL: "gpu-exclusive"}
    return "Pod", make_pod(f"jupyter-{user}", uid=user, node="n1", phase="Running", labels=labels, **more)


NODE = (
    "Node",
    make_node(
        labels={"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.count": "8"}, allocatable={GPU: "8"}
    ),
)


def test_quota_shows_who_uses_what(run: Run, cluster: Callable[..., Path]) -> None:
    files = cluster(pod_of("ada"), pod_of("bob", gpus=2), NODE)
    status, out, err = run("quota", CATALOG, "--cluster", files, "--now", NOW.isoformat())
    assert (status, err) == (0, "")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "all users together 40 GPU equivalents 3 GPU equivalents" in rows
    assert "team nlp 4 GPUs 3 GPUs" in rows
    assert "team nlp 6 GPU equivalents 3 GPU equivalents" in rows
    assert "bob in nlp 2 GPUs 2 GPUs" in rows
    assert "team vision 2 GPUs 0 GPUs" in rows


def test_quota_says_whether_one_more_fits(run: Run, cluster: Callable[..., Path]) -> None:
    files = cluster(pod_of("ada"), NODE)
    status, out, _ = run("quota", CATALOG, "--cluster", files, "--now", NOW.isoformat(), *ADA)
    assert status == 0
    assert out.strip() == "It may start: 7 free now · 1 more for you · 3 more for your team"
    _, text, _ = run("quota", CATALOG, "--cluster", files, "--now", NOW.isoformat(), *ADA, "--json")
    result = json.loads(text)["result"]
    assert (result["allowed"], result["supply"], result["free"], result["exact"]) == (True, "free", 7, True)


def test_quota_says_why_not_with_numbers(run: Run, cluster: Callable[..., Path]) -> None:
    files = cluster(pod_of("ada", gpus=2), NODE)
    status, _, err = run("quota", CATALOG, "--cluster", files, "--now", NOW.isoformat(), *ADA)
    assert status == 1
    assert "error[user-limit]: You have 2 of 2 GPU equivalents in use" in err
    status, out, _ = run("quota", CATALOG, "--cluster", files, "--now", NOW.isoformat(), *ADA, "--json")
    shortages = json.loads(out)["result"]["refusal"]["shortages"]
    assert shortages[0] == {"resource": "gpuEquivalents", "asked": 1, "used": 2, "limit": 2, "left": 0}


def test_quota_foresees_the_namespace(run: Run, cluster: Callable[..., Path]) -> None:
    quota = {
        "metadata": {"name": "q", "namespace": "team-nlp"},
        "spec": {"hard": {f"requests.{GPU}": "1"}},
        "status": {"hard": {f"requests.{GPU}": "1"}, "used": {f"requests.{GPU}": "1"}},
    }
    files = cluster(("ResourceQuota", quota), NODE)
    status, _, err = run("quota", CATALOG, "--cluster", files, *ADA, "--namespace", "team-nlp")
    assert status == 1
    assert "error[namespace-quota]: The namespace has 1 of 1 GPU in use" in err


def test_quota_without_a_cluster_knows_the_limits_only(run: Run) -> None:
    status, out, _ = run("quota", CATALOG, *ADA)
    assert (status, out.strip()) == (0, "It may start: 2 more for you · 4 more for your team")


def test_quota_reports_what_quotas_and_nodes_do_not_do(run: Run, cluster: Callable[..., Path]) -> None:
    quota = {"metadata": {"name": "q", "namespace": "team-nlp"}, "spec": {"hard": {f"limits.{GPU}": "4"}}}
    stopped = make_node(labels={"nvidia.com/gpu.count": "8"}, allocatable={GPU: "0"})
    status, _, err = run("quota", CATALOG, "--cluster", cluster(("ResourceQuota", quota), ("Node", stopped)))
    assert status == 1
    assert "error[ineffective-quota-key]" in err
    assert "error[gpu-node-without-resource]" in err


def test_quota_refuses_what_the_catalog_refuses(run: Run) -> None:
    status, _, err = run("quota", CATALOG, "--user", "eve", "--profile", "gpu-full")
    assert status == 1
    assert "error[" in err


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "neither JSON nor YAML"), ("a: [", "neither JSON nor YAML"), ("a: 1", "without kind or metadata")],
)
def test_files_that_are_no_cluster(run: Run, tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    status, _, err = run("quota", CATALOG, "--cluster", file)
    assert status == 2
    assert f"{file}: " in err
    assert problem in err


def test_without_a_cluster_nobody_is_said_to_use_nothing(run: Run) -> None:
    status, out, err = run("quota", CATALOG)
    assert (status, out) == (2, "")
    assert "name them with --cluster" in err


def test_a_moment_needs_its_time_zone(run: Run) -> None:
    status, _, err = run("quota", CATALOG, "--now", "2026-11-30T12:00:00")
    assert status == 2
    assert "say the time zone" in err


def test_several_yaml_documents_are_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    kind, node = NODE
    file.write_text(
        "\n---\n".join(json.dumps({"kind": kind, **node}) for _ in range(2)).replace("{", "\n{", 1)
    )
    status, out, _ = run("quota", CATALOG, "--cluster", file, *ADA)
    assert status == 0
    assert "8 free now" in out


# Phases -----------------------------------------------------------------------------------------------------


def test_phases_sums_up_the_hubs_log(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "starts.jsonl"
    records = [
        StartRecord(
            at=NOW, profile="gpu-full", version=3, pool="h200", outcome=Outcome.STARTED, seconds=60 + number,
            phases={"pull": 50.0, "warm-up": 10.0 + number}, warm=number == 0,
        )
        for number in range(4)
    ]  # fmt: skip
    records.append(
        StartRecord(
            at=NOW, profile="gpu-full", version=3, pool="h200", outcome=Outcome.FAILED, seconds=5,
            reason="image-not-found",
        )
    )  # fmt: skip
    log.write_text("\n".join(json.dumps(one.as_dict()) for one in records))
    status, out, _ = run("phases", log)
    assert status == 0
    head, row = (line.split() for line in out.splitlines())
    assert head[:4] == ["profile", "pool", "n", "failed"]
    assert " ".join(row) == "gpu-full h200 5 1 (1x image-not-found) 1 62 s never pull 50 s, warm-up 11 s"
    _, out, _ = run("phases", log, "--json")
    (summary,) = json.loads(out)["result"]["starts"]
    assert (summary["number"], summary["failed"], summary["p95"]) == (5, 1, None)


def test_phases_takes_a_start_apart_from_files(run: Run, cluster: Callable[..., Path]) -> None:
    status_ = {
        "conditions": [condition("PodScheduled", seconds=10), condition("Ready", seconds=100)],
        "containerStatuses": [container_status(running={"startedAt": at(90)})],
    }
    pod = ("Pod", make_pod(node="n1", phase="Running", status=status_))
    events = [
        ("Event", make_event("Pulling", seconds=20, container="notebook")),
        ("Event", make_event("Pulled", "Successfully pulled image", seconds=80, container="notebook")),
    ]
    files = cluster(pod, *events, NODE)
    status, out, _ = run("phases", "--cluster", files, "--pod", "jupyter-ada", "--now", at(200), "--json")
    (told,) = json.loads(out)["result"]["pods"]
    assert status == 0
    assert told["phases"] == {"queue": 10, "volume": 10, "pull": 60, "start": 10, "warm-up": 10}
    assert (told["warm"], told["seconds"], told["wait"]["reason"]) == (False, 100, "running")


def test_phases_says_why_a_start_cannot_succeed(run: Run, cluster: Callable[..., Path]) -> None:
    waiting = container_status(waiting={"reason": "ErrImagePull", "message": "x: not found"})
    files = cluster(("Pod", make_pod(node="n1", status={"containerStatuses": [waiting]})))
    status, out, err = run("phases", "--cluster", files, "--now", at(60))
    assert status == 1
    assert "error[image-not-found]: hub/jupyter-ada: The image of this workspace does not exist" in err
    assert "hub/jupyter-ada: The image of this workspace does not exist" in out


@pytest.mark.parametrize("args", [[], ["log", "--cluster", "file"]])
def test_phases_wants_one_source(run: Run, args: list[str]) -> None:
    assert run("phases", *args)[0] == 2


def test_phases_of_a_pod_that_is_not_there(run: Run, cluster: Callable[..., Path]) -> None:
    assert run("phases", "--cluster", cluster(NODE))[0] == 2
    assert run("phases", "--cluster", cluster(pod_of("ada")), "--pod", "other")[0] == 2


def test_an_empty_log_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    assert run("phases", tmp_path / "log")[1].strip() == "No start was recorded."
