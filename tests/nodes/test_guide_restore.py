"""The guide's way to save the hub's database and to put it back: its commands, word by word, in real pods.

What stands in for the hub writes to a database all the time, where the chart has it. What a real hub makes of
a restored one is in `tests/hub/test_restore.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image
from tests.devcluster.cluster import Cluster
from tests.devcluster.rules import enforce
from tests.guide import block_with, type_in
from tests.nodes.acting import eventually

FOLDER, CLAIM = "/srv/jupyterhub", "hub-db-dir"
WRITER = """
import contextlib, sqlite3, time
while True:
    with contextlib.suppress(sqlite3.Error):
        with contextlib.closing(sqlite3.connect("jupyterhub.sqlite", timeout=60)) as database, database:
            database.execute("create table if not exists users (id integer primary key, filler text)")
            database.execute("insert into users (filler) values (?)", ("x" * 1000,))
    time.sleep(0.02)
"""
COUNT = """
import sqlite3
ask = sqlite3.connect("jupyterhub.sqlite", timeout=60).execute
print(*ask("pragma integrity_check").fetchone(), *ask("select count(*) from users").fetchone())
"""


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    return Registry(cluster).publish(ensure_image("base"), "tests/hub")


def build_hub(namespace: str, image: str) -> dict[str, Any]:
    """Build the Deployment as far as the guide's commands read it: names, labels, volume, security."""
    labels = {"app": "jupyterhub", "component": "hub"}
    container = {
        "name": "hub",
        "image": image,
        "command": ["python3", "-c", WRITER],
        "workingDir": FOLDER,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "runAsUser": 1000,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "pvc", "mountPath": FOLDER}],
    }
    spec = {
        "securityContext": {"fsGroup": 1000},
        "automountServiceAccountToken": False,
        "nodeSelector": {"devcluster.test/pool": "cpu"},
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "core"}],
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "pvc", "persistentVolumeClaim": {"claimName": CLAIM}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "hub", "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def build_volume_claim(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def count(cluster: Cluster, namespace: str) -> int:
    """Say how many users a database has, that is whole."""
    where = ("exec", "deploy/hub", f"--namespace={namespace}", "--")
    word, number = cluster.kubectl(*where, "python3", "-c", COUNT).split()
    assert word == "ok"
    return int(number)


def test_a_database_is_saved_while_it_is_written_and_put_back(
    cluster: Cluster, namespace: str, image: str, tmp_path: Path
) -> None:
    def say(words: str) -> str:
        script = block_with(words).commands.replace("--namespace jupyterhub", f"--namespace {namespace}")
        return type_in(script, tmp_path, kubeconfig=cluster.kubeconfig)

    enforce(cluster, namespace)
    cluster.apply(build_volume_claim(namespace), build_hub(namespace, image))
    cluster.wait_for("deployment/hub", "condition=Available", namespace=namespace)

    eventually(cluster, lambda: count(cluster, namespace), what="the hub to have written")

    told = say("pragma integrity_check")
    found = re.fullmatch(r"ok (\d+) users\nbefore\.sqlite: OK\n", told)
    assert found, told
    saved = int(found[1])

    destroy = "echo no database > jupyterhub.sqlite && echo of another > jupyterhub.sqlite-journal"
    cluster.kubectl("exec", "deploy/hub", f"--namespace={namespace}", "--", "sh", "-c", destroy)

    told = say("name: hub-restore")
    sums = re.findall(r"\b[0-9a-f]{64}\b", told)
    assert len(sums) == 2
    assert len(set(sums)) == 1
    pods = cluster.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert [one["metadata"]["name"] for one in pods if not one["metadata"].get("deletionTimestamp")] == []

    say("--replicas=1")
    cluster.wait_for("deployment/hub", "condition=Available", namespace=namespace)
    assert eventually(cluster, lambda: count(cluster, namespace), what="the hub to write again") >= saved
    left = cluster.kubectl("exec", "deploy/hub", f"--namespace={namespace}", "--", "ls", FOLDER)
    assert "restored" not in left
