"""Rendered objects on a real API server: accepted, and admitting and refusing as the catalog means."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

from hub_ext.catalog.compose import combinations, compose
from hub_ext.catalog.load import examine, load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.render.baseline import bare_pod
from hub_ext.render.documents import thaw
from hub_ext.render.gpu_operator import render_gpu_operator
from hub_ext.render.pod import UserFacts, apply, build_claim, build_fragment
from hub_ext.render.quotas import render_limit_ranges, render_resource_quotas
from tests.control.catalogs import catalogs
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.kube import KubeCluster
from tests.devcluster.rules import enforce

CATALOG = Path(__file__).parents[1] / "golden" / "catalog.yaml"
USERS = [UserFacts(name="ada", team="nlp"), UserFacts(name="Zoë {x} $(HOME) ../..", server_name="two")]
EXAMPLES = 40


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(CATALOG)


def dry_run(cluster: KubeCluster, documents: Iterable[Mapping[str, Any]], namespace: str) -> None:
    """Ask the API server to admit objects without keeping them; raises `CommandFailedError`."""
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [thaw(d) for d in documents]})
    cluster.kubectl("create", "--dry-run=server", f"--namespace={namespace}", "--filename=-", input=items)


def pods(catalog: Catalog, users: Iterable[UserFacts] = USERS) -> Iterator[dict[str, Any]]:
    """Every pod and home claim that a catalog can lead to, each under a name of its own."""
    number = 0
    for user in users:
        for profile in catalog.profiles:
            for picks in combinations(profile):
                workspace = compose(catalog, profile, picks)
                baseline = bare_pod(user.name, user.server_name)
                pod = apply(baseline, build_fragment(catalog, workspace, user))
                claim = build_claim(catalog, workspace, user)
                for document in (pod, claim):
                    if document is not None:
                        number += 1
                        document["metadata"]["name"] += f"-{number}"
                        yield document


def without_classes(documents: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same objects without names of classes, which this cluster need not have."""
    for document in documents:
        changed = copy.deepcopy(document)
        for field in ("priorityClassName", "runtimeClassName"):
            changed["spec"].pop(field, None)
        yield changed


def test_every_pod_of_a_catalog_is_accepted_and_fits_restricted_pod_security(
    cluster: KubeCluster, namespace: str, catalog: Catalog
) -> None:
    enforce(cluster, namespace)
    dry_run(cluster, without_classes(pods(catalog)), namespace)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(drawn=catalogs())
def _collect(collected: list[Catalog], drawn: dict[str, Any]) -> None:
    examination = examine(drawn)
    if examination.catalog is not None:
        collected.append(examination.catalog)


def test_any_catalog_that_validates_gives_pods_that_are_accepted(
    cluster: KubeCluster, namespace: str
) -> None:
    """One request for all of them: a request of its own for each would take minutes."""
    collected: list[Catalog] = []
    _collect(collected)
    assert len(collected) >= EXAMPLES // 4, "most of what is drawn does not validate"
    documents: list[dict[str, Any]] = []
    for number, drawn in enumerate(collected):
        for document in without_classes(pods(drawn, USERS[1:])):
            document["metadata"]["name"] = f"c{number}-{len(documents)}"
            documents.append(document)
    kinds = {"pods": 0, "with a GPU": 0}
    for document in documents:
        kinds["pods"] += document["kind"] == "Pod"
        kinds["with a GPU"] += "gpu-workspaces.jupyter.org/gpu-sharing" in document["metadata"]["labels"]
    assert min(kinds.values()) > 10, kinds
    dry_run(cluster, documents, namespace)


def test_configuration_of_the_gpu_operator_is_made_of_valid_objects(
    cluster: KubeCluster, namespace: str, catalog: Catalog
) -> None:
    dry_run(cluster, render_gpu_operator(catalog, namespace=namespace).documents, namespace)


class TestTeamNamespace:
    """A namespace of a team with the rendered quota and limits in it."""

    @pytest.fixture
    def team(self, cluster: KubeCluster, namespace: str) -> str:
        text = CATALOG.read_text(encoding="utf-8")
        mine = text.replace("team-nlp", namespace).replace("\n    namespace: team-vision", "")
        catalog = load_catalog(yaml.safe_load(mine))
        quotas, limits = render_resource_quotas(catalog), render_limit_ranges(catalog)
        assert [len(rendering.documents) for rendering in (quotas, limits)] == [1, 1]
        cluster.apply(*(thaw(d) for d in (*limits.documents, *quotas.documents)))
        hard = "jsonpath={.status.hard.requests\\.nvidia\\.com/gpu}"
        cluster.wait_for("resourcequota/gpu-workspaces", f"{hard}=4", namespace=namespace)
        return namespace

    def test_every_pod_that_the_team_may_start_is_admitted(
        self, cluster: KubeCluster, team: str, catalog: Catalog
    ) -> None:
        for pod in without_classes(p for p in pods(catalog, USERS[:1]) if p["kind"] == "Pod"):
            dry_run(cluster, [pod], team)

    def test_the_last_card_is_given_and_the_next_refused(
        self, cluster: KubeCluster, team: str, catalog: Catalog
    ) -> None:
        workspace = compose(catalog, catalog.by_key["gpu-full", 3], {"cards": "two"})
        pod = apply(bare_pod("ada"), build_fragment(catalog, workspace, USERS[0]))
        (pod,) = without_classes([pod])
        for name in ("first", "second"):
            cluster.apply(pod | {"metadata": {**pod["metadata"], "name": name, "namespace": team}})
        with pytest.raises(CommandFailedError) as refused:
            dry_run(cluster, [pod], team)
        assert "exceeded quota: gpu-workspaces, requested: requests.nvidia.com/gpu=2" in refused.value.output
        assert "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4" in refused.value.output

    def test_slices_that_no_profile_leads_to_cannot_be_had(self, cluster: KubeCluster, team: str) -> None:
        with pytest.raises(CommandFailedError) as refused:
            dry_run(cluster, [plain_pod({"nvidia.com/mig-2g.35gb": "1"})], team)
        assert "limited: requests.nvidia.com/mig-2g.35gb=0" in refused.value.output

    def test_no_container_gets_more_cards_than_a_profile_gives(self, cluster: KubeCluster, team: str) -> None:
        with pytest.raises(CommandFailedError) as refused:
            dry_run(cluster, [plain_pod({"nvidia.com/gpu": "3"})], team)
        assert "maximum nvidia.com/gpu usage per Container is 2, but limit is 3" in refused.value.output

    def test_a_container_that_says_nothing_gets_little_and_no_card(
        self, cluster: KubeCluster, team: str
    ) -> None:
        cluster.apply(plain_pod({}, name="plain", namespace=team))
        made = cluster.get(f"/api/v1/namespaces/{team}/pods/plain")
        resources = made["spec"]["containers"][0]["resources"]
        assert resources["requests"]["cpu"] == "100m"
        assert resources["requests"]["memory"] == "128Mi"
        assert {k: v for k, v in resources["limits"].items() if v != "0"} == {}
        quota = cluster.get(f"/api/v1/namespaces/{team}/resourcequotas/gpu-workspaces")
        assert quota["status"]["used"]["requests.nvidia.com/gpu"] == "0"


def plain_pod(limits: dict[str, str], **metadata: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/none:1", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", **metadata},
        "spec": {"containers": [container]},
    }
