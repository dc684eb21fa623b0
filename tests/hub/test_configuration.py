"""The two ways to bring a catalog to a hub: one call in its configuration, or the values of the chart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcluster.kube import KubeCluster
from tests.hub.conftest import CATALOG
from tests.hub.harness import START_SECONDS, Hub, checked_on

CHART_MODULE = """
import json, pathlib
values = json.loads((pathlib.Path(__file__).parent / "values.json").read_text())
def get_config(key, default=None):
    value = values
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return default
        value = value[part]
    return value
"""


def chart(folder: Path, catalog: Any) -> dict[str, str]:
    """Put the module by which the chart's hub reads its values on the path."""
    folder.mkdir()
    (folder / "z2jh.py").write_text(CHART_MODULE)
    (folder / "values.json").write_text(json.dumps({"custom": {"gpuWorkspaces": catalog}}))
    return {"PYTHONPATH": str(folder)}


@pytest.fixture
def charted_hub(
    hub_kubeconfig: Path, hub_namespace: str, homes: None, notebook_port: int, tmp_path: Path
) -> Iterator[Hub]:
    hub = Hub(
        tmp_path / "hub",
        kubeconfig=hub_kubeconfig,
        namespace=hub_namespace,
        catalog=CATALOG,
        notebook_port=notebook_port,
        by="chart",
        env=chart(tmp_path / "chart", yaml.safe_load(CATALOG.read_text())),
    )
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


def test_in_the_chart_the_class_and_the_values_are_enough(
    charted_hub: Hub, cluster: KubeCluster, hub_namespace: str
) -> None:
    charted_hub.put_in_groups("charted", "nlp")
    with charted_hub.browser("charted") as browser:
        assert checked_on(browser.spawn_page().text) == ["cpu@1"]
        assert browser.post_form({"profile": "full@2"}).status_code == 302
    charted_hub.wait_until_ready("charted")
    pods = json.loads(cluster.kubectl("get", "pods", f"--namespace={hub_namespace}", "--output=json"))[
        "items"
    ]
    (pod,) = [p for p in pods if p["metadata"]["name"] == "jupyter-charted"]
    notebook = pod["spec"]["containers"][0]
    assert notebook["resources"]["requests"]["nvidia.com/gpu"] == "1"
    assert pod["metadata"]["labels"]["hub.jupyter.org/network-access-hub"] == "true"
    assert {"hub.jupyter.org/dedicated", "nvidia.com/gpu"} <= {
        t.get("key") for t in pod["spec"]["tolerations"]
    }
    homes = [m for m in notebook["volumeMounts"] if m["mountPath"] == "/home/jovyan"]
    claims = [
        v["persistentVolumeClaim"]["claimName"]
        for v in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in v
    ]
    assert len(homes) == 1
    assert claims == ["claim-charted"]
    charted_hub.stop_server("charted")


@pytest.mark.parametrize("by", ["configure", "chart"])
def test_a_hub_with_a_broken_catalog_does_not_start_and_says_all_that_is_wrong(
    tmp_path: Path, by: str
) -> None:
    broken = yaml.safe_load(CATALOG.read_text())
    broken["profiles"][0]["imagse"] = ["base"]
    broken["profiles"][1]["resources"]["memory"] = "16GB"
    catalog = tmp_path / "catalog.yaml"
    catalog.write_text(yaml.safe_dump(broken))
    hub = Hub(
        tmp_path / "hub",
        kubeconfig=tmp_path / "none",
        namespace="none",
        catalog=catalog,
        notebook_port=1,
        by=by,
        env=chart(tmp_path / "chart", broken),
    )
    assert hub.launch().wait(timeout=START_SECONDS) != 0
    assert "imagse" in hub.log
    assert "16GB" in hub.log
    assert "The hub does not start" in hub.log


def test_a_hub_whose_users_have_namespaces_of_their_own_does_not_start_and_says_what_to_use(
    tmp_path: Path,
) -> None:
    hub = Hub(
        tmp_path / "hub",
        kubeconfig=tmp_path / "none",
        namespace="none",
        catalog=CATALOG,
        notebook_port=1,
        traits={"enable_user_namespaces": True},
    )
    assert hub.launch().wait(timeout=START_SECONDS) != 0
    assert "The hub does not start: KubeSpawner.enable_user_namespaces is not supported" in hub.log
    assert "teams.<team>.namespace" in hub.log
