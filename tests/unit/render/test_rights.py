"""Roles say what was declared, in the namespaces that are meant, and nothing else."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

import pytest

from hub_ext.install.model import Installation
from hub_ext.managed import GROUP
from hub_ext.render.rights import RUNS, Places, build_rights
from hub_ext.rights import HUB, Rights, Rule, Where
from services.preflight.scene import Objects, Scene
from services.prepuller.settings import Pods

UNNAMED = Scene(objects=Objects({}), namespace="jupyterhub", hub_namespace="jupyterhub")
PLACES = Places(hub="hub", workspaces=("nlp", "vision"), jobs="runs", pulls="pulls")

RIGHTS = Rights(
    name="x",
    rules=(
        Rule(where=Where.CLUSTER, resources=("nodes",), verbs=("list",), why="looks"),
        Rule(where=Where.WORKSPACES, resources=("pods",), verbs=("get",), why="looks closer"),
        Rule(
            where=Where.JOBS, group="batch", resources=("jobs",), verbs=("create",), names=("a",), why="runs"
        ),
    ),
)
ALL = [HUB, *(importlib.import_module(f"{e.value}.rights").RIGHTS for e in entry_points(group=GROUP))]


def by_kind(made, kind):
    return {one["metadata"].get("namespace", ""): one for one in made if one["kind"] == kind}


def test_rules_hold_where_they_are_meant_to():
    made = build_rights(RIGHTS, PLACES)
    assert set(by_kind(made, "Role")) == set(by_kind(made, "RoleBinding")) == {"hub", "nlp", "vision", "runs"}
    assert by_kind(made, "ClusterRole")[""]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    ]
    assert by_kind(made, "Role")["runs"]["rules"] == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"], "resourceNames": ["a"]}
    ]


def test_a_service_has_an_account_of_its_own_in_the_hubs_namespace():
    made = build_rights(RIGHTS, PLACES)
    (account,) = by_kind(made, "ServiceAccount").values()
    assert account["metadata"]["namespace"] == "hub"
    assert account["automountServiceAccountToken"] is False
    for binding in [*by_kind(made, "RoleBinding").values(), *by_kind(made, "ClusterRoleBinding").values()]:
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "x", "namespace": "hub"}]


def test_the_hubs_account_is_the_charts():
    made = build_rights(HUB, PLACES)
    assert by_kind(made, "ServiceAccount") == {}
    assert by_kind(made, "ClusterRoleBinding")[""]["subjects"][0]["name"] == "hub"


def test_without_namespaces_of_teams_workspaces_are_in_the_hubs():
    assert set(by_kind(build_rights(RIGHTS, Places(hub="hub")), "Role")) == {"hub", RUNS}


def test_who_is_in_no_team_with_a_namespace_has_workspaces_in_the_hubs():
    assert PLACES.of_workspaces == ("hub", "nlp", "vision")
    assert Places(hub="hub", workspaces=("nlp", "hub")).of_workspaces == ("hub", "nlp")


def test_everybody_takes_the_same_namespaces_where_none_are_named():
    described = Installation.model_validate({"run": "in-hub", "catalog": "c", "values": []})
    assert described.places == Places()
    assert UNNAMED.places == Places(workspaces=("jupyterhub",))
    assert Places().pulls == Pods().namespace


@pytest.mark.parametrize("rights", ALL, ids=lambda rights: rights.name)
def test_rights_are_narrow(rights):
    """No wildcards, no secrets, nothing that gives more rights; each with its reason."""
    for rule in rights.rules:
        assert "*" not in (*rule.verbs, *rule.resources, rule.group)
        assert not {"secrets", "pods/exec", "pods/attach", "serviceaccounts/token"} & set(rule.resources)
        assert not {"escalate", "bind", "impersonate"} & set(rule.verbs)
        assert rule.why
    for scope in rights.scopes:
        assert scope.why
        assert not scope.name.startswith("admin")


@pytest.mark.parametrize("rights", ALL, ids=lambda rights: rights.name)
def test_nobody_writes_to_the_whole_cluster(rights):
    for rule in rights.rules:
        if rule.where is Where.CLUSTER:
            assert set(rule.verbs) <= {"get", "list", "watch"}


@pytest.mark.parametrize("rights", ALL, ids=lambda rights: rights.name)
def test_scopes_are_those_of_jupyterhub(rights):
    from jupyterhub.scopes import scope_definitions

    assert {scope.name.partition("!")[0] for scope in rights.scopes} <= set(scope_definitions)
