"""Kueue itself admits and holds back by the rendered queues what the catalog means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.render.documents import thaw
from hub_ext.render.kueue import render_kueue
from tests.devcluster.cluster import Cluster
from tests.devcluster.waiting import until

CATALOG = Path(__file__).parents[1] / "golden" / "catalog.yaml"
TEAMS = {"nlp": "team-nlp", "vision": "team-vision"}
Submit = Callable[[str, str, dict[str, str]], None]


@pytest.fixture(scope="module")
def queues(batch_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with Kueue and the queues of the golden catalog."""
    cluster = batch_cluster
    documents = render_kueue(load_catalog(yaml.safe_load(CATALOG.read_text(encoding="utf-8")))).documents
    for name in TEAMS.values():
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    cluster.apply(*(thaw(document) for document in documents))
    for team in TEAMS:
        cluster.wait_for(f"clusterqueue/gpu-workspaces-{team}", "condition=Active")
    yield cluster
    cluster.check()
    for document in reversed(documents):
        kind, metadata = document["kind"], document["metadata"]
        where = [f"--namespace={metadata['namespace']}"] if "namespace" in metadata else []
        cluster.kubectl("delete", kind, metadata["name"], *where, "--wait=false")
    cluster.kubectl("delete", "namespace", *TEAMS.values(), "--wait=false")


@pytest.fixture
def submit(queues: Cluster) -> Iterator[Submit]:
    """Submit Jobs to a team's queue; they are deleted afterwards, and what they held is free again."""
    made: list[tuple[str, str]] = []

    def to(team: str, name: str, resources: dict[str, str]) -> None:
        made.append((TEAMS[team], name))
        queues.apply(job(team, name, {"cpu": "100m", "memory": "64Mi"} | resources))

    yield to
    for namespace, name in made:
        queues.kubectl("delete", "job", name, f"--namespace={namespace}", "--wait", "--cascade=foreground")


def job(team: str, name: str, limits: dict[str, str]) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/none:1", "resources": {"limits": limits}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": TEAMS[team],
            "labels": {"kueue.x-k8s.io/queue-name": team},
        },
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def workload(cluster: Cluster, team: str, name: str) -> dict[str, Any]:
    """What Kueue thinks of a Job."""
    items = cluster.get(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{TEAMS[team]}/workloads")["items"]
    found = [w for w in items if any(o["name"] == name for o in w["metadata"]["ownerReferences"])]
    return found[0] if found else {}


def reserved(cluster: Cluster, team: str, name: str) -> dict[str, Any] | None:
    conditions = workload(cluster, team, name).get("status", {}).get("conditions", ())
    return next((c for c in conditions if c["type"] == "QuotaReserved"), None)


def wait_until_admitted(cluster: Cluster, team: str, name: str) -> dict[str, Any]:
    """Wait for a Job to be let go; gives its pods' template as Kueue left it."""

    def missing() -> str | None:
        seen = cluster.get(f"/apis/batch/v1/namespaces/{TEAMS[team]}/jobs/{name}")
        return None if not seen["spec"]["suspend"] else f"{name} waits: {reserved(cluster, team, name)}"

    until(missing, what=f"{name} to be admitted", check=cluster.check)
    made: dict[str, Any] = cluster.get(f"/apis/batch/v1/namespaces/{TEAMS[team]}/jobs/{name}")
    return dict(made["spec"]["template"]["spec"])


def wait_until_held(cluster: Cluster, team: str, name: str, reason: str) -> None:
    def missing() -> str | None:
        seen = reserved(cluster, team, name)
        held = seen is not None and seen["status"] == "False" and reason in seen["message"]
        return None if held else f"{name}: {seen}"

    until(missing, what=f"{name} to be held back", check=cluster.check)


def test_a_team_gets_what_its_quota_says_and_no_more(queues: Cluster, submit: Submit) -> None:
    submit("nlp", "four", {"nvidia.com/gpu": "4"})
    template = wait_until_admitted(queues, "nlp", "four")
    assert template["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H200"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in template["tolerations"]
    submit("nlp", "fifth", {"nvidia.com/gpu": "1"})
    wait_until_held(queues, "nlp", "fifth", "insufficient unused quota for nvidia.com/gpu")


def test_nobody_borrows_what_another_team_leaves(queues: Cluster, submit: Submit) -> None:
    submit("vision", "three", {"nvidia.com/gpu": "3"})
    wait_until_held(queues, "vision", "three", "insufficient quota for nvidia.com/gpu")
    submit("vision", "two", {"nvidia.com/gpu": "2"})
    wait_until_admitted(queues, "vision", "two")


def test_each_kind_of_gpu_is_counted_by_itself(queues: Cluster, submit: Submit) -> None:
    submit("nlp", "cards", {"nvidia.com/gpu": "4"})
    submit("nlp", "slices", {"nvidia.com/mig-1g.18gb": "6"})
    for name in ("cards", "slices"):
        wait_until_admitted(queues, "nlp", name)
    submit("nlp", "unreachable", {"nvidia.com/mig-2g.35gb": "1"})
    wait_until_held(queues, "nlp", "unreachable", "insufficient quota for nvidia.com/mig-2g.35gb")


def test_what_is_not_bounded_is_let_through(queues: Cluster, submit: Submit) -> None:
    submit("vision", "large", {"cpu": "900", "memory": "9Ti", "nvidia.com/mig-1g.18gb": "50"})
    wait_until_admitted(queues, "vision", "large")


def test_processors_are_counted_once_whatever_the_pool(queues: Cluster, submit: Submit) -> None:
    submit("nlp", "most", {"cpu": "150", "nvidia.com/gpu": "1"})
    wait_until_admitted(queues, "nlp", "most")
    submit("nlp", "more", {"cpu": "60", "nvidia.com/mig-1g.18gb": "1"})
    wait_until_held(queues, "nlp", "more", "insufficient unused quota for cpu")
