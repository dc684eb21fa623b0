"""Every pod of an installation is admitted where `restricted` is enforced, and none has an account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.catalog.compose import combinations, compose
from hub_ext.catalog.load import load_catalog
from hub_ext.cli.manifests import read_installation, render
from hub_ext.cli.preview import read_baseline
from hub_ext.render.pod import UserFacts, apply, build_fragment
from services.preflight.scene import merged
from tests.control.test_installation import SETS
from tests.control.test_rendered import dry_run, without_classes
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.kube import KubeCluster
from tests.devcluster.rules import enforce

ROOT = Path(__file__).parents[2]
CATALOGS = [
    *sorted((ROOT / "helm-values" / "catalogs").glob("*.yaml")),
    ROOT / "tests" / "demo" / "catalog.yaml",
]
HOST = ("hostNetwork", "hostPID", "hostIPC")


@pytest.fixture
def restricted(cluster: KubeCluster, namespace: str) -> str:
    enforce(cluster, namespace)
    return namespace


def values_of(path: Path) -> dict[str, Any]:
    files = [path.parent / file for file in read_installation(path).values]
    return merged(yaml.safe_load(file.read_text(encoding="utf-8")) for file in files)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The pod that KubeSpawner makes before any profile, configured as the chart configures it."""
    (settings,) = {json.dumps(values_of(path)["hub"]["config"]["KubeSpawner"]) for path in SETS}
    # What the chart sets by itself: singleuser.uid, .fsGid, .allowPrivilegeEscalation.
    chart = {"uid": 1000, "fs_gid": 100, "allow_privilege_escalation": False, "storage_pvc_ensure": False}
    config = tmp_path_factory.mktemp("hub") / "jupyterhub_config.py"
    config.write_text(
        "import json\n"
        "c.JupyterHub.spawner_class = 'kubespawner.KubeSpawner'\n"
        f"c.KubeSpawner.update(json.loads({json.dumps(chart | json.loads(settings))!r}))\n"
    )
    return read_baseline(config, "ada", "").pod


def workspaces(file: Path, baseline: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every pod that a catalog can lead to, each under a name of its own."""
    catalog = load_catalog(file)
    for profile in catalog.profiles:
        for number, picks in enumerate(combinations(profile)):
            team = next(iter(catalog.teams), None)
            fragment = build_fragment(
                catalog, compose(catalog, profile, picks), UserFacts(name="ada", team=team)
            )
            pod = apply(baseline, fragment)
            name = f"{profile.name}-{profile.version}-{number}"
            yield {**pod, "metadata": {**pod["metadata"], "name": name, "namespace": None}}


def faults(spec: dict[str, Any]) -> list[str]:
    """What of a pod would reach its node."""
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    return [
        *(word for word in HOST if spec.get(word)),
        *(f"hostPath {volume['name']}" for volume in spec.get("volumes", ()) if "hostPath" in volume),
        *(
            f"privileged {one['name']}"
            for one in containers
            if one.get("securityContext", {}).get("privileged")
        ),
        *(
            f"host port {one['name']}"
            for one in containers
            if any("hostPort" in p for p in one.get("ports", ()))
        ),
    ]


@pytest.mark.parametrize("file", CATALOGS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_workspace_is_restricted_and_has_no_account(
    cluster: KubeCluster, restricted: str, baseline: dict[str, Any], file: Path
) -> None:
    pods = [dict(pod) for pod in without_classes(workspaces(file, baseline))]
    assert pods
    for pod in pods:
        pod["metadata"].pop("namespace")
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert faults(pod["spec"]) == []
    dry_run(cluster, pods, restricted)


def test_every_service_of_its_own_pod_is_restricted(cluster: KubeCluster, restricted: str) -> None:
    path = next(path for path in SETS if path.stem == "enterprise")
    manifests = render(read_installation(path), path.parent, "manifests")
    accounts = [one for one in manifests if one["kind"] == "ServiceAccount"]
    cluster.apply(*({**one, "metadata": {**one["metadata"], "namespace": restricted}} for one in accounts))
    templates = {
        one["metadata"]["name"]: one["spec"]["template"] for one in manifests if one["kind"] == "Deployment"
    }
    assert len(templates) == 3
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": name},
            "spec": template["spec"],
        }
        for name, template in templates.items()
    ]
    assert [fault for pod in pods for fault in faults(pod["spec"])] == []
    dry_run(cluster, pods, restricted)


def test_a_pod_that_reaches_its_node_is_refused(
    cluster: KubeCluster, restricted: str, baseline: dict[str, Any]
) -> None:
    """The same check, of a pod that is not to pass it."""
    pod = next(iter(without_classes(workspaces(CATALOGS[0], baseline))))
    pod["metadata"].pop("namespace")
    pod["spec"]["hostPID"] = True
    assert faults(pod["spec"]) == ["hostPID"]
    with pytest.raises(CommandFailedError, match="restricted"):
        dry_run(cluster, [pod], restricted)
