"""The three sets of values: complete, accepted by the chart, closed, and written anew where code changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hub_ext.catalog.load import examine
from hub_ext.cli import main
from hub_ext.cli.manifests import PARTS, read_installation, render
from hub_ext.install.model import Installation, RunAs
from hub_ext.install.network import NOT_PUBLIC
from hub_ext.install.policies import build_policies
from hub_ext.install.values import build_values
from hub_ext.managed import declared
from hub_ext.render.documents import to_yaml
from hub_ext.rights import HUB
from services.idle_culler.settings import CullerSettings
from services.job_handoff.settings import HandoffSettings
from services.preflight.checks import CHECKS
from services.preflight.problems import Outcome, judge
from services.preflight.scene import Objects, Scene, merged
from services.prepuller.app import PrepullerSettings

FOLDER = Path(__file__).parents[3] / "helm-values"
SETS = sorted((FOLDER / "sets").glob("*.yaml"))
SETTINGS = {"idle-culler": CullerSettings, "job-handoff": HandoffSettings, "prepuller": PrepullerSettings}
CHART = os.environ.get("Z2JH_DATA")
README = (FOLDER / "README.md").read_text(encoding="utf-8")


@cache
def read(file: Path) -> Any:
    """Read YAML by the fast reader: the chart's schema is long."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@pytest.fixture(scope="module", params=SETS, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


@pytest.fixture(scope="module")
def installation(path) -> Installation:
    return read_installation(path)


@pytest.fixture(scope="module")
def manifests(path, installation) -> list[dict[str, Any]]:
    return render(installation, path.parent, "manifests")


def layers(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    files = [path.parent / file for file in read_installation(path).values]
    return [(file.name, read(file)) for file in files]


@pytest.fixture(scope="module")
def values(path) -> dict[str, Any]:
    return merged(layer for _, layer in layers(path))


@pytest.mark.parametrize("part", PARTS)
def test_what_is_rendered_is_what_the_code_says(path, installation, part):
    text = to_yaml(*render(installation, path.parent, part))
    file = FOLDER / "rendered" / f"{path.stem}.{part}.yaml"
    again = f"gpu-workspaces manifests helm-values/sets/{path.name} --part {part} > {file}"
    assert file.read_text() == text, f"write it anew: {again}"


def test_the_catalog_has_nothing_to_be_said_against_it(path, installation):
    found = examine(path.parent / installation.catalog).findings
    assert [str(one) for one in found if one.severity != "note"] == []


@pytest.mark.given("Z2JH_DATA")
def test_the_chart_takes_the_values(values):
    schemas = sorted(Path(CHART).glob("values.schema-*.yaml"))
    assert schemas
    for schema in schemas:
        own = schema.with_name(schema.name.replace("values.schema-", "values-"))
        whole = merged([read(own), values])
        jsonschema.Draft7Validator(read(schema)).validate(whole)


def test_preflight_has_nothing_against_the_values(path, values):
    scene = Scene(
        objects=Objects({}),
        namespace="jupyterhub",
        hub_namespace="jupyterhub",
        values=values,
        layers=tuple(layers(path)),
        rights=(HUB,),
    )
    results = [judge(check, scene) for check in CHECKS if check.needs == ("values",)]
    assert results
    told = [str(one) for result in results for one in result.observations]
    assert told == []
    assert {result.outcome for result in results} == {Outcome.PASSED}


def test_services_take_their_settings(installation, tmp_path):
    catalog = {"catalog": str(tmp_path)}
    for name, entry in installation.services.items():
        SETTINGS[name].model_validate({**catalog, **entry.settings}, by_alias=True, by_name=False)


def test_the_hub_knows_every_service_and_its_rights(installation, values):
    assert set(values["hub"]["services"]) == set(installation.services)
    for name in installation.services:
        rights = declared(name)[1]
        role = values["hub"]["loadRoles"].get(f"gpu-workspaces-{name}", {"scopes": []})
        assert role["scopes"] == [scope.name for scope in rights.scopes]
        for group in rights.opened_by:
            assert f"access:services!service={name}" in values["hub"]["loadRoles"][group]["scopes"]


def test_where_runs_can_be_handed_off_a_profile_says_so(installation, values):
    profiles = values["custom"]["gpuWorkspaces"]["profiles"]
    runnable = [profile["name"] for profile in profiles if "jobs" in profile]
    assert bool(runnable) == ("job-handoff" in installation.services)


def test_no_value_is_a_secret(values):
    text = json.dumps(values).lower()
    for word in ("client_secret", "password", "secrettoken", "apitoken"):
        assert f'"{word}"' not in text


def test_every_layer_is_part_of_a_set():
    used = {(path.parent / file).resolve() for path in SETS for file in read_installation(path).values}
    files = {file.resolve() for folder in ("layers", "catalogs") for file in (FOLDER / folder).glob("*.yaml")}
    assert files <= used


def of_kind(manifests, kind: str) -> list[dict[str, Any]]:
    return [one for one in manifests if one["kind"] == kind]


def test_no_policy_opens_metadata_or_private_addresses(manifests, values):
    policies = [one["spec"] for one in of_kind(manifests, "NetworkPolicy")]
    policies += [values["singleuser"]["networkPolicy"], values["proxy"]["chp"]["networkPolicy"]]
    for policy in policies:
        for rule in policy.get("egress", []):
            for peer in rule.get("to", []):
                if block := peer.get("ipBlock"):
                    assert set(block["except"]) == set(NOT_PUBLIC)
    rules = values["singleuser"]["networkPolicy"]["egressAllowRules"]
    assert not any(value for key, value in rules.items() if not key.startswith("dnsPortsKubeSystem"))


def test_workspaces_reach_public_https_and_nothing_else_but_names_hub_and_services(values):
    public = [
        rule
        for rule in values["singleuser"]["networkPolicy"]["egress"]
        if any("ipBlock" in peer for peer in rule["to"])
    ]
    assert [rule["ports"] for rule in public] == [[{"protocol": "TCP", "port": 443}]]


SERVICES = ("idle-culler", "job-handoff", "prepuller")
FAR = {
    "hubNamespace": "hub",
    "teamNamespaces": ["nlp"],
    "jobsNamespace": "runs",
    "monitoringNamespace": "monitoring",
    "services": {name: {} for name in SERVICES},
    "catalog": "c.yaml",
    "values": [],
}


def let_in(rules: list[dict[str, Any]], port: int) -> set[tuple[str, str]]:
    """Say who is let in at a port: component (empty for all pods) and namespace (empty for the hub's own)."""
    return {
        (
            peer["podSelector"].get("matchLabels", {}).get("component", ""),
            peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name", ""),
        )
        for rule in rules
        if port in {one["port"] for one in rule["ports"]}
        for peer in rule["from"]
    }


@pytest.mark.parametrize("name", SERVICES)
def test_the_same_pods_reach_a_service_wherever_it_runs(name):
    rights = {one: declared(one) for one in SERVICES}
    in_hub = Installation.model_validate({**FAR, "run": "in-hub"}, by_alias=True, by_name=False)
    apart = Installation.model_validate({**FAR, "run": "deployments"}, by_alias=True, by_name=False)
    hub = build_values(in_hub, rights)["hub"]["networkPolicy"]["ingress"]
    policies = {one["metadata"]["name"]: one["spec"] for one in build_policies(apart, rights)}
    own = policies[f"gpu-workspaces-{name}"]["ingress"]
    users = {("singleuser-server", "hub"), ("singleuser-server", "nlp")}
    expected = {("proxy", ""), ("", "monitoring")}
    expected |= users if name != "prepuller" else set()
    expected |= {("", "runs")} if name == "job-handoff" else set()
    assert let_in(hub, in_hub.port_of(name)) == expected
    assert let_in(own, apart.port_of(name)) == expected | {("hub", "")}


def test_policies_deny_both_ways(manifests):
    for policy in of_kind(manifests, "NetworkPolicy"):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_namespaces_take_no_pod_with_rights_over_nodes(manifests):
    for namespace in of_kind(manifests, "Namespace"):
        labels = namespace["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_nobody_s_work_is_ended_by_a_priority(manifests):
    classes = of_kind(manifests, "PriorityClass")
    assert {one["preemptionPolicy"] for one in classes} == {"Never"}


def test_catalogs_name_only_priorities_that_are_made(values, manifests):
    made = {one["metadata"]["name"] for one in of_kind(manifests, "PriorityClass")}
    pools = values["custom"]["gpuWorkspaces"]["pools"].values()
    assert {pool["priorityClass"] for pool in pools if "priorityClass" in pool} <= made


def test_objects_are_made_once_and_namespaces_first(manifests):
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in manifests]
    assert len(names) == len(set(names))
    kinds = [kind for kind, _, _ in names]
    assert kinds == sorted(kinds, key=lambda kind: kind != "Namespace")


def test_pods_of_services_are_restricted(installation, manifests):
    deployments = of_kind(manifests, "Deployment")
    expected = len(installation.services) if installation.run is RunAs.DEPLOYMENTS else 0
    assert len(deployments) == expected
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["serviceAccountName"] in installation.services
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "value" not in next(e for e in container["env"] if e["name"] == "JUPYTERHUB_API_TOKEN")


def test_services_of_the_hub_use_its_account_and_others_their_own(installation, manifests):
    accounts = {
        one["metadata"]["name"]
        for one in of_kind(manifests, "ServiceAccount")
        if one["metadata"]["namespace"] == installation.hub_namespace
    }
    bound = {
        subject["name"]
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for binding in of_kind(manifests, kind)
        for subject in binding["subjects"]
    }
    if installation.run is RunAs.IN_HUB:
        assert (accounts, bound) == (set(), {"hub"})
    else:
        assert accounts == set(installation.services)
        assert bound == accounts | {"hub"}


def test_the_guide_names_every_set_and_layer():
    for file in (*SETS, *(FOLDER / "layers").glob("*.yaml")):
        assert file.relative_to(FOLDER).as_posix() in README


def test_mistakes_in_a_description_are_told(tmp_path, capsys):
    file = tmp_path / "set.yaml"
    file.write_text("run: in-hub\ncatalog: c.yaml\nvalues: []\nservicez: {}\n")
    assert main(["manifests", str(file)]) == 2
    assert "servicez" in capsys.readouterr().err
    file.write_text("run: [\n")
    assert main(["manifests", str(file)]) == 2
    catalog = next((FOLDER / "catalogs").glob("*.yaml"))
    file.write_text(f"run: in-hub\ncatalog: {catalog}\nvalues: []\nservices: {{cooker: {{}}}}\n")
    assert main(["manifests", str(file), "--part", "values"]) != 0
    assert "cooker" in capsys.readouterr().err


def test_files_are_printed_for_helm_and_preflight(path, capsys):
    assert main(["manifests", str(path), "--part", "files"]) == 0
    words = capsys.readouterr().out.split()
    assert words[::2] == ["--values"] * len(read_installation(path).values)
    assert main(["preflight", "--offline", *words]) == 0
    assert "FAILED" not in capsys.readouterr().out
