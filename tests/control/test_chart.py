"""The real chart of Zero to JupyterHub with the three sets, where it can be had: `Z2JH_CHART` names it.

Helm checks the values against the chart's schema, an API server takes all that comes out, and the chart's own
NetworkPolicies are those that other tests take them for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.cli.manifests import complete, render
from hub_ext.install.model import Description, Installation
from services.preflight.scene import merged
from tests.control.test_installation import SETS
from tests.devcluster import build
from tests.devcluster.commands import execute
from tests.devcluster.kube import KubeCluster
from tests.devcluster.pytest_plugin import namespace_name
from tests.nodes import chart

pytestmark = [pytest.mark.given("Z2JH_CHART"), pytest.mark.timeout(1800)]
"""The first test has Helm built."""

VARIABLE = "Z2JH_CHART"
SECRET = ("--set-string", "hub.config.GenericOAuthenticator.client_secret=secret")
KUBERNETES = "1.36.0"
"""Helm asks no cluster here, and takes its own client's version for the cluster's."""


@pytest.fixture(scope="module")
def helm() -> Path:
    return build.ensure(["helm"])["helm"]


@pytest.fixture(scope="module", params=SETS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture(scope="module")
def installation(cluster: KubeCluster, path: Path) -> Iterator[Installation]:
    """The set in namespaces that are the test's own."""
    hub, jobs, pulls, *teams = (
        namespace_name(f"chart-{part}") for part in ("hub", "runs", "pulls", "a", "b")
    )
    own = {"hubNamespace": hub, "jobsNamespace": jobs, "pullsNamespace": pulls}
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    description = Description.model_validate(text | own, by_alias=True, by_name=False)
    found = Installation.of(description, load_catalog(path.parent / description.catalog))
    of_teams = {"team_namespaces": tuple(teams[: len(found.team_namespaces)])}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": hub}})
    yield complete(found.model_copy(update=of_teams))
    cluster.kubectl("delete", "namespace", "--wait=false", "--ignore-not-found", hub, jobs, pulls, *teams)


@pytest.fixture(scope="module")
def values(path: Path, installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of values in their order; what is rendered says where this installation is."""
    own = tmp_path_factory.mktemp("values") / "rendered.yaml"
    (rendered,) = render(installation, path.parent, "values")
    own.write_text(json.dumps(rendered))
    return [own if file.startswith("../rendered/") else path.parent / file for file in installation.values]


@pytest.fixture(scope="module")
def templated(helm: Path, values: list[Path], installation: Installation) -> list[dict[str, Any]]:
    """What Helm makes of chart and values; it refuses values that the chart's schema does not have."""
    files = [word for file in values for word in ("--values", str(file))]
    command: list[str | Path] = [
        *(helm, "template", chart.RELEASE, os.environ[VARIABLE]),
        *(f"--namespace={installation.hub_namespace}", f"--kube-version={KUBERNETES}", *files, *SECRET),
    ]
    text = execute(command, env={"HOME": str(values[0].parent), "PATH": os.environ["PATH"]})
    return [one for one in yaml.safe_load_all(text) if one]


def test_the_api_server_takes_chart_and_manifests(
    cluster: KubeCluster, path: Path, installation: Installation, templated: list[dict[str, Any]]
) -> None:
    manifests = render(installation, path.parent, "manifests")
    namespaces = [one for one in manifests if one["kind"] == "Namespace"]
    cluster.apply(*namespaces)
    options = ("--server-side", "--force-conflicts", "--validate=strict", "--field-manager=helm")
    for items, where in ((templated, (f"--namespace={installation.hub_namespace}",)), (manifests, ())):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        told = cluster.kubectl("apply", *options, *where, "--filename=-", input=text)
        assert "Warning" not in told
    hub = cluster.get(f"/apis/apps/v1/namespaces/{installation.hub_namespace}/deployments/hub")
    assert hub["spec"]["template"]["metadata"]["labels"].items() >= chart.LABELS["hub"].items()


def test_the_chart_s_policies_are_what_tests_take_them_for(
    values: list[Path], installation: Installation, templated: list[dict[str, Any]]
) -> None:
    whole = merged(yaml.safe_load(file.read_text(encoding="utf-8")) for file in values)
    ours = {
        one["metadata"]["name"]: one["spec"]
        for one in chart.build_policies(whole, installation.hub_namespace)
    }
    theirs = {one["metadata"]["name"]: one["spec"] for one in templated if one["kind"] == "NetworkPolicy"}
    assert theirs == ours


def test_pods_of_the_chart_have_the_labels_that_tests_give_them(templated: list[dict[str, Any]]) -> None:
    found = {one["metadata"]["name"]: one for one in templated if one["kind"] == "Deployment"}
    for name in ("hub", "proxy"):
        labels = found[name]["spec"]["template"]["metadata"]["labels"]
        assert labels.items() >= chart.LABELS[name].items()


def test_nothing_of_the_chart_reaches_a_node(templated: list[dict[str, Any]]) -> None:
    for one in templated:
        spec = one.get("spec", {}).get("template", {}).get("spec")
        if one["kind"] in {"Deployment", "DaemonSet", "StatefulSet"}:
            assert not any(spec.get(word) for word in ("hostNetwork", "hostPID", "hostIPC"))
            assert not any("hostPath" in volume for volume in spec.get("volumes", ()))
        assert one["kind"] != "DaemonSet", "pullers of the chart are off"
