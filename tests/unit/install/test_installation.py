"""What follows from a description: nothing that is written once is to be written twice."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hub_ext.catalog.load import load_catalog
from hub_ext.cli.manifests import complete, render
from hub_ext.install.model import Description, Installation
from hub_ext.install.network import METADATA
from services.idle_culler.settings import CullerSettings
from services.job_handoff.settings import HandoffSettings

SETS = Path(__file__).parents[3] / "helm-values" / "sets"
ENTERPRISE = yaml.safe_load((SETS / "enterprise.yaml").read_text(encoding="utf-8"))
RUNS_IN = ("in-hub", "deployments")
read = cache(load_catalog)


def described(**changes: Any) -> Installation:
    """The enterprise set with changes; services of the hub's pod have nothing that a pod of its own has."""
    whole = {**ENTERPRISE, **changes}
    if whole["run"] == "in-hub":
        settings = {name: entry.get("settings", {}) for name, entry in whole["services"].items()}
        whole["services"] = {name: {"settings": one} for name, one in settings.items()}
    description = Description.model_validate(whole, by_alias=True, by_name=False)
    return complete(Installation.of(description, read(SETS / description.catalog)))


def values_of(installation: Installation) -> dict[str, Any]:
    (values,) = render(installation, SETS, "values")
    return values


def named(installation: Installation, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    (found,) = (
        one
        for one in render(installation, SETS, "manifests")
        if (one["kind"], one["metadata"]["name"]) == (kind, name)
        and namespace in {None, one["metadata"].get("namespace")}
    )
    return found


def blocks(policy: dict[str, Any]) -> list[dict[str, Any]]:
    """Networks that a policy leads to, with their ports."""
    return [
        {"ports": {one["port"] for one in rule.get("ports", ())}, **peer["ipBlock"]}
        for rule in policy["egress"]
        for peer in rule.get("to", ())
        if "ipBlock" in peer
    ]


def test_namespaces_of_teams_are_those_of_the_catalog():
    assert described().team_namespaces == ("ws-nlp", "ws-vision")
    assert described(hubNamespace="ws-nlp").team_namespaces == ("ws-vision",)
    assert described(catalog="../catalogs/research-team.yaml").team_namespaces == ()


def test_a_description_that_repeats_them_is_refused():
    with pytest.raises(ValidationError, match="teamNamespaces"):
        described(teamNamespaces=["ws-nlp"])


def test_services_are_told_where_everything_is():
    installation = described(hubNamespace="hub", jobsNamespace="runs", pullsNamespace="pulls")
    settings = {name: entry.settings for name, entry in installation.services.items()}
    culler = CullerSettings.model_validate(settings["idle-culler"], by_alias=True, by_name=False)
    handoff = HandoffSettings.model_validate(
        {"catalog": "c.yaml", **settings["job-handoff"]}, by_alias=True, by_name=False
    )
    assert culler.namespace == handoff.server_namespaces == ("hub", "ws-nlp", "ws-vision")
    assert culler.handoff == "/services/job-handoff/"
    assert handoff.namespace == "runs"
    assert handoff.runner.url == "http://job-handoff.hub:8080/services/job-handoff/"
    assert settings["prepuller"]["pods"]["namespace"] == "pulls"
    assert named(installation, "Namespace", "runs")["kind"] == "Namespace"


def test_what_a_service_s_own_settings_say_comes_first():
    settings = {"namespace": ["only-here"]}
    installation = described(services={"idle-culler": {"settings": settings}})
    assert installation.services["idle-culler"].settings["namespace"] == ["only-here"]
    assert "handoff" not in installation.services["idle-culler"].settings


@pytest.mark.parametrize("run", RUNS_IN)
def test_a_hub_below_a_path_is_found_there_by_all(run):
    installation = described(run=run, baseUrl="/jupyter/")
    values = values_of(installation)
    assert values["hub"]["baseUrl"] == "/jupyter/"
    url = values["singleuser"]["extraEnv"]["GPU_WORKSPACES_CULLER_URL"]
    assert url == installation.url_of("idle-culler") + "/jupyter/services/idle-culler/"
    runner = installation.services["job-handoff"].settings["runner"]["url"]
    assert runner == installation.url_of("job-handoff") + "/jupyter/services/job-handoff/"
    assert installation.services["idle-culler"].settings["handoff"] == "/jupyter/services/job-handoff/"


def test_a_service_of_its_own_pod_is_told_the_path():
    installation = described(baseUrl="/jupyter/")
    (container,) = named(installation, "Deployment", "gpu-workspaces-prepuller")["spec"]["template"]["spec"][
        "containers"
    ]
    env = {one["name"]: one.get("value") for one in container["env"]}
    assert env["JUPYTERHUB_API_URL"] == "http://hub:8081/jupyter/hub/api"
    assert env["JUPYTERHUB_BASE_URL"] == "/jupyter/"
    assert env["JUPYTERHUB_SERVICE_PREFIX"] == "/jupyter/services/prepuller/"
    assert container["livenessProbe"]["httpGet"]["path"] == "/jupyter/services/prepuller/health"
    assert container["startupProbe"]["httpGet"] == container["livenessProbe"]["httpGet"]


def test_at_the_root_the_chart_is_told_nothing():
    assert "baseUrl" not in values_of(described())["hub"]


@pytest.mark.parametrize(
    "url", ["jupyter", "/jupyter", "jupyter/", "//", "/a b/", "/../x y", "/{x}/", "/x\n/"]
)
def test_what_is_no_path_is_refused(url):
    with pytest.raises(ValidationError):
        described(baseUrl=url)


@pytest.mark.parametrize(
    "changes",
    [
        {"jobsNamespace": "jupyterhub"},
        {"jobsNamespace": "ws-nlp"},
        {"pullsNamespace": "monitoring"},
        {"pullsNamespace": "kube-system"},
        {"jobsNamespace": "all", "pullsNamespace": "all"},
        {"hubNamespace": "default"},
    ],
    ids=str,
)
def test_what_is_to_be_apart_has_namespaces_of_its_own(changes):
    with pytest.raises(ValidationError, match="namespace"):
        described(**changes)


@pytest.mark.parametrize("network", ["10.0.0.1/8", "kube", "300.0.0.0/8", "", "0.0.0.0/33"])
def test_what_is_no_network_is_refused(network):
    for changes in ({"apiServer": {"addresses": [network]}}, {"nameServers": [network]}):
        with pytest.raises(ValidationError):
            described(**changes)


def test_a_public_api_server_is_left_out_of_what_workspaces_reach():
    known = {"addresses": ["203.0.113.10/32", "10.1.2.3/32", "2001:db8::1/128"], "ports": [443]}
    installation = described(apiServer=known)
    team = named(installation, "NetworkPolicy", "gpu-workspaces-workspaces", "ws-nlp")["spec"]
    own = values_of(installation)["singleuser"]["networkPolicy"]
    for policy in (team, own):
        (public,) = blocks(policy)
        assert "203.0.113.10/32" in public["except"]
        assert "10.1.2.3/32" not in public["except"], "private addresses are left out already"
        assert not any(":" in one for one in public["except"]), "of version 6 nothing is allowed anyway"


def test_services_reach_the_api_server_that_is_named_and_the_web_where_they_need_it():
    installation = described(apiServer={"addresses": ["10.1.2.3/32"], "ports": [6443]})
    reached = {
        name: blocks(named(installation, "NetworkPolicy", f"gpu-workspaces-{name}")["spec"])
        for name in installation.services
    }
    api = {"cidr": "10.1.2.3/32", "ports": {6443}}
    assert reached["prepuller"] == [api]
    assert reached["idle-culler"] == [api]
    store = [one for one in reached["job-handoff"] if one != api]
    assert [(one["cidr"], one["ports"]) for one in store] == [("0.0.0.0/0", {443})]


def test_names_may_be_resolved_elsewhere_by_all():
    installation = described(nameServers=["169.254.20.10/32"])
    values = values_of(installation)
    policies = [
        values["hub"]["networkPolicy"],
        values["singleuser"]["networkPolicy"],
        values["proxy"]["chp"]["networkPolicy"],
        *(
            named(installation, "NetworkPolicy", f"gpu-workspaces-{name}")["spec"]
            for name in ("runs", "idle-culler", "job-handoff", "prepuller")
        ),
        named(installation, "NetworkPolicy", "gpu-workspaces-workspaces", "ws-vision")["spec"],
    ]
    for policy in policies:
        assert {"ports": {53}, "cidr": "169.254.20.10/32"} in blocks(policy)


def test_further_rules_of_a_service_are_its_own():
    mail = {"to": [{"ipBlock": {"cidr": "192.0.2.25/32"}}], "ports": [{"protocol": "TCP", "port": 587}]}
    installation = described(services={"idle-culler": {"egress": [mail]}, "prepuller": {}})
    assert mail in named(installation, "NetworkPolicy", "gpu-workspaces-idle-culler")["spec"]["egress"]
    assert mail not in named(installation, "NetworkPolicy", "gpu-workspaces-prepuller")["spec"]["egress"]


@pytest.mark.parametrize(
    "entry", [{"volume": "1Gi"}, {"secret": "keys"}, {"egress": [{"ports": []}]}], ids=str
)
def test_what_only_a_pod_of_its_own_can_have_is_refused_of_the_hub_s_processes(entry):
    own = {"run": "deployments", "catalog": "c.yaml", "values": [], "services": {"idle-culler": entry}}
    assert Installation.model_validate(own, by_alias=True, by_name=False)
    with pytest.raises(ValidationError, match=r"services\.idle-culler"):
        Installation.model_validate(own | {"run": "in-hub"}, by_alias=True, by_name=False)


def test_a_service_gets_the_keys_of_its_secret_as_variables():
    installation = described(services={"job-handoff": ENTERPRISE["services"]["job-handoff"], "prepuller": {}})
    handoff, prepuller = (
        named(installation, "Deployment", f"gpu-workspaces-{name}")["spec"]["template"]["spec"]["containers"]
        for name in ("job-handoff", "prepuller")
    )
    assert handoff[0]["envFrom"] == [{"secretRef": {"name": "gpu-workspaces-store"}}]
    assert "envFrom" not in prepuller[0]


@pytest.mark.parametrize("run", RUNS_IN)
def test_all_pods_pull_with_the_same_secrets(run):
    installation = described(run=run, pullSecrets=["registry", "mirror"])
    secrets = [{"name": "registry"}, {"name": "mirror"}]
    assert values_of(installation)["imagePullSecrets"] == secrets
    deployments = [one for one in render(installation, SETS, "manifests") if one["kind"] == "Deployment"]
    assert len(deployments) == (3 if run == "deployments" else 0)
    for one in deployments:
        assert one["spec"]["template"]["spec"]["imagePullSecrets"] == secrets
    shared = installation.services["prepuller"].settings.get("shared")
    # The hub tells a prepuller of its own pod what all workspaces have.
    assert shared == ({"pullSecrets": ["registry", "mirror"]} if run == "deployments" else None)


def test_without_pull_secrets_none_are_named():
    installation = described(pullSecrets=[])
    assert "imagePullSecrets" not in values_of(installation)
    assert "imagePullSecrets" not in json.dumps(render(installation, SETS, "manifests"))


def test_without_services_nothing_more_is_opened():
    values = values_of(described(run="in-hub", services={}, monitoringNamespace=None))
    proxy = values["proxy"]["chp"]["networkPolicy"]["egress"]
    assert [rule["ports"] for rule in proxy] == [[{"protocol": "TCP", "port": 8888}]] * 2, (
        "workspaces of teams"
    )
    assert values["hub"]["services"] == {}


def test_the_hub_is_kept_from_metadata_and_from_nothing_else():
    (everything,) = blocks(values_of(described())["hub"]["networkPolicy"])  # the API server is at no address
    assert everything == {"ports": set(), "cidr": "0.0.0.0/0", "except": list(METADATA)}


def test_nobody_of_another_namespace_gets_in_by_a_label():
    values = values_of(described())
    assert "interNamespaceAccessLabels" not in json.dumps(values)
    for rule in values["hub"]["networkPolicy"]["ingress"]:
        for peer in rule["from"]:
            assert peer["namespaceSelector"]["matchLabels"].keys() == {"kubernetes.io/metadata.name"}
