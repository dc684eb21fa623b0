"""Attacks with the accounts of hub and services on a real API server; `tests/attacks.py` lists them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hub_ext.render.rights import Places, build_rights
from hub_ext.rights import HUB
from tests.control.test_installation import Question, answers, declared_rights
from tests.devcluster.kube import KubeCluster
from tests.devcluster.pytest_plugin import namespace_name

NODES: tuple[Question, ...] = (
    *(("", "nodes", verb) for verb in ("update", "patch", "delete", "deletecollection")),
    *(("", "nodes/proxy", verb) for verb in ("get", "create")),
)
"""To cordon, label or end a machine, and to speak to its kubelet."""
PODS = ("pods/eviction", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers")
"""To end somebody's pod, or to get into it."""
RIGHTS = (
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "serviceaccounts",
)


@pytest.fixture(scope="module")
def places(cluster: KubeCluster) -> Iterator[Places]:
    """Namespaces in which hub and services have all the rights that they declare."""
    names = [namespace_name(f"attacks-{part}") for part in ("hub", "team", "jobs", "pulls")]
    hub, team, jobs, pulls = names
    places = Places(hub=hub, workspaces=(team,), jobs=jobs, pulls=pulls)
    objects = [one for rights in declared_rights() for one in build_rights(rights, places)]
    cluster.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in names))
    cluster.apply(*objects)
    yield places
    for one in objects:
        if one["kind"].startswith("Cluster"):
            cluster.kubectl("delete", one["kind"], one["metadata"]["name"], "--wait=false")
    cluster.kubectl("delete", "namespace", "--wait=false", *names)


@pytest.fixture(scope="module")
def told(cluster: KubeCluster, places: Places) -> dict[str, dict[Question, bool]]:
    """What each account may, of all that is asked here."""
    spaces = (places.hub, *places.workspaces, places.jobs, places.pulls, "kube-system")
    asked = {
        *NODES,
        *((space, pod, verb) for space in spaces for pod in PODS for verb in ("create", "patch", "update")),
        *((space, "secrets", verb) for space in spaces for verb in ("get", "list", "watch")),
        *((space, "serviceaccounts/token", "create") for space in spaces),
        *(
            (space, right, verb)
            for space in ("", *spaces)
            for right in RIGHTS
            for verb in ("create", "patch")
        ),
        ("", "users", "impersonate"),
    }
    accounts = {rights.name: "hub" if rights is HUB else rights.name for rights in declared_rights()}
    return {
        name: answers(cluster, f"system:serviceaccount:{places.hub}:{account}", asked)
        for name, account in accounts.items()
    }


def allowed(told: dict[str, dict[Question, bool]], *resources: str) -> set[tuple[str, Question]]:
    """What is allowed of some resources, to whomever."""
    return {
        (name, question)
        for name, one in told.items()
        for question, yes in one.items()
        if yes and question[1] in resources
    }


def test_nobody_here_cordons_drains_or_ends_a_machine(told: dict[str, dict[Question, bool]]) -> None:
    """No event, no node's name and no flapping leads to that: there is no right to do it."""
    assert allowed(told, "nodes", "nodes/proxy", "pods/eviction") == set()


def test_nobody_here_gets_into_a_pod_that_runs(told: dict[str, dict[Question, bool]]) -> None:
    assert allowed(told, *PODS) == set()


def test_nobody_here_reads_secrets_or_makes_tokens(told: dict[str, dict[Question, bool]]) -> None:
    assert allowed(told, "secrets", "serviceaccounts/token") == set()


def test_nobody_here_raises_rights(told: dict[str, dict[Question, bool]]) -> None:
    assert allowed(told, *RIGHTS, "users") == set()
