"""The guide's snapshots of homes: its commands, word by word, on a real API server with the real schemas.

No driver is here that would take one: that a snapshot holds what it should is the driver's own business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcluster import build
from tests.devcluster.kube import KubeCluster
from tests.devcluster.pytest_plugin import namespace_name
from tests.devcluster.rules import until_served
from tests.guide import block_with, type_in

GROUP = "snapshot.storage.k8s.io"
LABEL = {"component": "singleuser-storage"}


@pytest.fixture(scope="module")
def snapshots(cluster: KubeCluster) -> Iterator[None]:
    """What a cluster with a snapshot controller knows; one of our own, for what is there goes."""
    path = build.manifest("snapshots")
    documents = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    names = [one["metadata"]["name"] for one in documents if one]
    cluster.apply(path)
    until_served(cluster, names)
    yield
    cluster.kubectl("delete", "crd", "--wait=false", *names)


@pytest.fixture
def team(cluster: KubeCluster) -> Iterator[str]:
    """Another namespace with homes."""
    name = namespace_name("guide-team")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def build_claim(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def parts() -> tuple[str, str]:
    """What takes the snapshots, and what waits until they are taken."""
    text = block_with("kind: VolumeSnapshot\n").commands
    taken, wait, rest = text.partition("kubectl wait volumesnapshot")
    assert wait
    return taken, wait + rest


@pytest.mark.usefixtures("machines", "snapshots")
def test_a_snapshot_of_each_home_is_asked_for_and_waited_for(
    cluster: KubeCluster, namespace: str, team: str, tmp_path: Path
) -> None:
    cluster.apply(
        build_claim("claim-ada", namespace, **LABEL),
        build_claim("claim-b---1a2b3c4d", team, **LABEL),
        build_claim("datasets", team),
    )
    take, wait = parts()
    type_in(take, tmp_path, kubeconfig=cluster.kubeconfig)
    text = cluster.kubectl("get", "volumesnapshot", "--all-namespaces", "--output=json")
    made = [one for one in json.loads(text)["items"] if one["metadata"]["namespace"] in {namespace, team}]
    assert {
        (
            one["metadata"]["namespace"],
            one["metadata"]["name"],
            one["spec"]["source"]["persistentVolumeClaimName"],
        )
        for one in made
    } == {
        (namespace, "claim-ada-before", "claim-ada"),
        (team, "claim-b---1a2b3c4d-before", "claim-b---1a2b3c4d"),
    }
    assert {one["spec"]["volumeSnapshotClassName"] for one in made} == {"fast"}
    for one in json.loads(text)["items"]:  # as the controller would
        where = f"--namespace={one['metadata']['namespace']}"
        ready = json.dumps({"status": {"readyToUse": True}})
        cluster.kubectl(
            *("patch", "volumesnapshot", one["metadata"]["name"], where),
            *("--subresource=status", "--type=merge", f"--patch={ready}"),
        )
    told = type_in(wait, tmp_path, kubeconfig=cluster.kubeconfig)
    assert told.count("condition met") == len(made)


@pytest.mark.usefixtures("machines", "snapshots")
def test_the_restored_claim_is_taken_as_it_stands_there(cluster: KubeCluster, namespace: str) -> None:
    claim = yaml.safe_load(block_with("dataSourceRef").text)
    claim["metadata"]["namespace"] = namespace
    text = json.dumps(claim)
    cluster.kubectl("create", "--validate=strict", "--filename=-", input=text)
    kept = cluster.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim['metadata']['name']}")
    assert kept["spec"]["dataSourceRef"] == claim["spec"]["dataSourceRef"]
    assert kept["spec"]["dataSource"] == claim["spec"]["dataSourceRef"], "the API server knows it as a source"
    snapshot = cluster.get(f"/apis/{GROUP}/v1")
    assert "VolumeSnapshot" in {one["kind"] for one in snapshot["resources"]}
