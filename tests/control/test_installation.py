"""The manifests on a real API server: it takes them, and they give exactly the rights that are declared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hub_ext.cli.manifests import read_installation, render
from hub_ext.managed import declared
from hub_ext.render.rights import Places, build_rights
from hub_ext.rights import HUB, Rights
from tests.devcluster.kube import KubeCluster
from tests.devcluster.pytest_plugin import namespace_name
from tests.devcluster.waiting import until

SETS = sorted((Path(__file__).parents[2] / "helm-values" / "sets").glob("*.yaml"))
SERVICES = ("idle-culler", "job-handoff", "prepuller")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
SENSITIVE = ("secrets", "pods/exec", "serviceaccounts/token", "clusterroles.rbac.authorization.k8s.io")


@pytest.fixture(scope="module")
def places(cluster: KubeCluster) -> Iterator[Places]:
    """Namespaces that are the test's own."""
    names = [namespace_name(f"rights-{part}") for part in ("hub", "team", "jobs", "pulls", "other")]
    cluster.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one}} for one in names))
    hub, team, jobs, pulls, _ = names
    yield Places(hub=hub, workspaces=(team,), jobs=jobs, pulls=pulls)
    cluster.kubectl("delete", "namespace", "--wait=false", *names)


@pytest.fixture(scope="module")
def namespaces_of_sets(cluster: KubeCluster) -> Iterator[None]:
    """Those of all sets: the API server checks what is in a namespace only where that exists."""
    names = set()
    for path in SETS:
        installation = read_installation(path)
        manifests = render(installation, path.parent, "manifests")
        names |= {one["metadata"]["name"] for one in manifests if one["kind"] == "Namespace"}
        names.add(installation.hub_namespace)
    cluster.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in names))
    yield
    cluster.kubectl("delete", "namespace", "--wait=false", *names)


@pytest.mark.usefixtures("namespaces_of_sets")
@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_the_api_server_takes_the_manifests(cluster: KubeCluster, path: Path) -> None:
    manifests = render(read_installation(path), path.parent, "manifests")
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    told = cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-", input=text
    )
    assert len(told.strip().splitlines()) == len(manifests)
    assert "Warning" not in told


Question = tuple[str, str, str]
"""Namespace (empty for the whole cluster), resource with its group as kubectl writes it, verb."""


def answers(cluster: KubeCluster, account: str, questions: Iterable[Question]) -> dict[Question, bool]:
    """Ask the API server what an account may; all at once, for kubectl starts slowly."""
    asked = sorted(set(questions))
    items = [_review(account, *question) for question in asked]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    told = cluster.kubectl("create", "--output=jsonpath={.status.allowed} ", "--filename=-", input=text)
    words = told.replace("true", " true ").replace("false", " false ").split()
    return dict(zip(asked, [word == "true" for word in words], strict=True))


def _review(account: str, namespace: str, named: str, verb: str) -> dict[str, Any]:
    resource, _, group = named.partition(".")
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
        "group": group,
        "namespace": namespace,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {"name": ""},
        "spec": {"user": account, "resourceAttributes": attributes},
    }


def declared_rights() -> list[Rights]:
    return [HUB, *(declared(name)[1] for name in SERVICES)]


@pytest.mark.parametrize("rights", declared_rights(), ids=lambda rights: rights.name)
def test_accounts_may_what_is_declared_and_nothing_else(
    cluster: KubeCluster, places: Places, rights: Rights
) -> None:
    objects = build_rights(rights, places)
    cluster.apply(*objects)
    try:
        _check(cluster, places, rights)
    finally:
        for one in objects:
            if one["kind"].startswith("Cluster"):
                cluster.kubectl("delete", one["kind"], one["metadata"]["name"], "--wait=false")


def _check(cluster: KubeCluster, places: Places, rights: Rights) -> None:
    account = f"system:serviceaccount:{places.hub}:{'hub' if rights is HUB else rights.name}"
    granted = {
        (namespace, f"{resource}.{rule.group}" if rule.group else resource, verb)
        for rule in rights.rules
        for namespace in places.of(rule.where) or ("",)
        for resource in rule.resources
        for verb in rule.verbs
    }
    everywhere = {(named, verb) for namespace, named, verb in granted if not namespace}
    resources = {named for _, named, _ in granted}
    spaces = ("", places.hub, *places.workspaces, places.jobs, places.pulls, "kube-system")
    asked = {(space, named, verb) for space in spaces for named in resources for verb in VERBS}
    asked |= {(space, named, "get") for space in spaces for named in SENSITIVE}
    expected = {one: one in granted or one[1:] in everywhere for one in asked}
    told: dict[Question, bool] = {}

    def missing() -> str | None:
        told.update(answers(cluster, account, asked))
        late = sorted(one for one in asked if expected[one] and not told[one])
        return f"it may not {late}" if late else None

    until(missing, what=f"roles of {rights.name} to count", check=cluster.check)
    assert {one for one in asked if told[one] is not expected[one]} == set()


def test_preflight_reads_a_live_cluster_and_changes_nothing(cluster: KubeCluster, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "hub_ext.cli", "preflight", "--json", "--save", str(kept)]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode in {0, 1}, done.stderr
    told = json.loads(done.stdout)
    outcomes = {one["check"]: one["outcome"] for one in told["result"]["checks"]}
    assert told["result"]["denied"] == {}
    assert outcomes["kubernetes-version"] == "passed"
    assert outcomes["rights"] == "failed"  # no hub is here, and so nobody has granted it anything
    again = subprocess.run(
        [*command[:5], "--cluster", str(kept)], capture_output=True, text=True, env=environment, check=False
    )
    assert {one["check"]: one["outcome"] for one in json.loads(again.stdout)["result"]["checks"]} == outcomes
