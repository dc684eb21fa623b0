"""What a hub is told about services that it runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from traitlets.config import Config

import hub_ext.managed
from hub_ext.errors import CatalogError
from hub_ext.managed import Managed, declared, hub_roles, run_services, variable_of
from hub_ext.rights import Rights, Scope
from services.prepuller.app import PrepullerSettings

RIGHTS = Rights(
    name="idle-culler",
    scopes=(Scope(name="list:users", why="looks at servers"),),
    opened_by=("user", "server"),
)


@pytest.fixture
def configured(monkeypatch):
    """A configuration as the chart leaves it, and the service added to it."""
    monkeypatch.setattr(hub_ext.managed, "declared", lambda name: ("services.idle_culler", RIGHTS))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    c = Config()
    c.KubeSpawner.environment = {"FROM": "the chart"}
    c.JupyterHub.services = [{"name": "of-the-admin"}]
    service = Managed(name="idle-culler", url="http://hub:10101", settings={"observeOnly": True})
    run_services(c, [service], catalog="/catalog.yaml", base_url="/base/")
    return c


def test_the_service_is_added_to_those_that_are_there(configured):
    first, added = configured.JupyterHub.services
    assert first == {"name": "of-the-admin"}
    assert added["command"][1:] == ["-m", "services.idle_culler"]
    assert json.loads(added["environment"]["GPU_WORKSPACES_SETTINGS"]) == {"observeOnly": True}
    assert added["environment"]["GPU_WORKSPACES_CATALOG"] == "/catalog.yaml"
    # The hub passes few variables on, and without this one a pod's account cannot be used.
    assert added["environment"]["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"


def test_the_rights_are_those_that_are_declared(configured):
    roles = {role["name"]: role for role in configured.JupyterHub.load_roles.get_value([])}
    assert roles["gpu-workspaces-idle-culler"] == {
        "name": "gpu-workspaces-idle-culler",
        "scopes": ["list:users"],
        "services": ["idle-culler"],
    }
    assert roles["user"]["scopes"] == ["self", "access:services!service=idle-culler"]
    assert roles["server"]["scopes"] == [
        "users:activity!user",
        "access:servers!server",
        "access:services!service=idle-culler",
    ]


def test_workspaces_are_told_the_address_beside_what_they_are_told_already(configured):
    found = configured.WorkspaceSpawner.environment.get_value(dict(configured.KubeSpawner.environment))
    assert found == {
        "FROM": "the chart",
        "GPU_WORKSPACES_CULLER_URL": "http://hub:10101/base/services/idle-culler/",
    }


def test_a_prepuller_that_the_chart_lists_is_asked_with_its_token():
    c = Config()
    c.JupyterHub.services = [{"name": "prepuller", "url": "http://hub.jupyterhub:10102", "api_token": "t"}]
    run_services(c, [], catalog="/catalog.yaml", base_url="/base/")
    assert c.WorkspaceSpawner.prepuller_url == "http://hub.jupyterhub:10102/base/services/prepuller/"
    assert c.WorkspaceSpawner.prepuller_token == "t"


def told(c, **settings):
    """What a prepuller with these settings is told, by a hub that runs it."""
    environment = {"GPU_WORKSPACES_SETTINGS": json.dumps(settings)}
    c.JupyterHub.services = [{"name": "prepuller", "url": "http://hub:10102", "environment": environment}]
    run_services(c, [], catalog="/catalog.yaml")
    found = json.loads(environment["GPU_WORKSPACES_SETTINGS"])
    PrepullerSettings.model_validate({"catalog": "/catalog.yaml", **found}, by_alias=True, by_name=False)
    return found


TAINT = {"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "user", "effect": "NoSchedule"}


def test_a_prepuller_is_told_what_the_hub_gives_all_workspaces():
    c = Config()
    c.KubeSpawner.image_pull_secrets = ["one", {"name": "two"}]
    c.KubeSpawner.tolerations = [TAINT]
    c.KubeSpawner.node_selector = {"purpose": "any"}
    c.WorkspaceSpawner.node_selector = {"purpose": "user"}
    c.KubeSpawner.image_pull_policy = "Never"
    c.KubeSpawner.init_containers = [{"name": "block", "image": "quay.io/jupyterhub/k8s-network-tools:4.4.0"}]
    c.KubeSpawner.extra_containers = [
        {"name": "own", "image": "example.com/{username}:1"},
        {"name": "twice", "image": "quay.io/jupyterhub/k8s-network-tools:4.4.0"},
    ]
    assert told(c, shared={"pullSecrets": ["mine"]}, limits={"total": 3}) == {
        "limits": {"total": 3},
        "shared": {
            "pullSecrets": ["mine"],
            "tolerations": [TAINT],
            "nodeSelector": {"purpose": "user"},
            "images": ["quay.io/jupyterhub/k8s-network-tools:4.4.0"],
            "pullPolicy": "Never",
        },
    }


def test_what_is_added_to_lists_is_told_too():
    """As the chart adds its block of cloud metadata."""
    c = Config()
    c.KubeSpawner.init_containers.append({"name": "block", "image": "quay.io/x/tools:1"})
    c.KubeSpawner.node_selector.update({"purpose": "user"})
    assert told(c) == {"shared": {"images": ["quay.io/x/tools:1"], "nodeSelector": {"purpose": "user"}}}


def test_what_is_not_set_plainly_is_not_told():
    c = Config()
    c.KubeSpawner.tolerations = None
    c.KubeSpawner.node_selector = None
    c.KubeSpawner.image_pull_policy = ["odd"]
    c.KubeSpawner.init_containers = [None, {"name": "no image"}]
    assert told(c) == {"shared": {}}


@pytest.mark.parametrize("text", ["limits: {total: 3}", "[]", '{"shared": null}', "{"])
def test_settings_in_other_words_stay_as_they_are(text):
    c = Config()
    environment = {"GPU_WORKSPACES_SETTINGS": text}
    c.JupyterHub.services = [{"name": "prepuller", "url": "http://hub:10102", "environment": environment}]
    run_services(c, [], catalog="/catalog.yaml")
    assert environment == {"GPU_WORKSPACES_SETTINGS": text}


def test_who_needs_nothing_gets_no_role():
    assert hub_roles([Rights(name="prepuller")]) == []


def test_a_service_that_does_not_exist_is_told(monkeypatch):
    entries = [SimpleNamespace(name="prepuller", value="services.prepuller")]
    monkeypatch.setattr(hub_ext.managed, "entry_points", lambda group: entries)
    with pytest.raises(CatalogError, match="Services are prepuller"):
        declared("preppuller")


@pytest.mark.parametrize(
    ("name", "variable"),
    [("idle-culler", "GPU_WORKSPACES_CULLER_URL"), ("job-handoff", "GPU_WORKSPACES_HANDOFF_URL")],
)
def test_variables_have_the_short_name(name, variable):
    assert variable_of(name) == variable


@pytest.mark.parametrize("services", [None, [{"name": "other"}]], ids=["nothing-set", "a-list"])
def test_a_prepuller_that_the_hub_runs_is_asked_with_its_own_token(services):
    """A list that nobody has set yet can be added to, and not be looked into."""
    c = Config()
    if services is not None:
        c.JupyterHub.services = services
    run_services(c, [Managed(name="prepuller", url="http://hub:10103")], catalog="/catalog.yaml")
    entries = c.JupyterHub.services if services is not None else c.JupyterHub.services.get_value([])
    assert entries[-1]["name"] == "prepuller"
    assert c.WorkspaceSpawner.prepuller_token == entries[-1]["api_token"]
    assert len(entries[-1]["api_token"]) >= 32
    assert c.WorkspaceSpawner.prepuller_url == "http://hub:10103/services/prepuller/"
    assert not c.WorkspaceSpawner.environment.to_dict(), "no workspace may use it, so none is told of it"
