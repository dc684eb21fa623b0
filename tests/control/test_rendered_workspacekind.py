"""The rendered WorkspaceKinds against Kubeflow's own schema and rules (CEL), on a real API server.

The schema is not ours to keep: `WORKSPACEKIND_CRD` names the file `kubeflow.org_workspacekinds.yaml`
(kubeflow/notebooks, branch notebooks-v2, workspaces/controller/manifests/kustomize/base/crd).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.render.documents import thaw
from hub_ext.render.workspacekind import render_workspace_kinds
from tests.devcluster.kube import KubeCluster

CRD = os.environ.get("WORKSPACEKIND_CRD")
CATALOG = Path(__file__).parents[1] / "golden" / "catalog.yaml"

pytestmark = pytest.mark.given("WORKSPACEKIND_CRD")


@pytest.fixture(scope="module")
def schema(cluster: KubeCluster) -> Iterator[None]:
    crd = yaml.safe_load(Path(CRD or "").read_text(encoding="utf-8"))
    name = crd["metadata"]["name"]
    crd["spec"].pop("conversion", None)
    cluster.apply(crd)
    cluster.wait_for(f"crd/{name}", "condition=Established")
    yield
    cluster.kubectl("delete", "crd", "--wait=false", name)


@pytest.mark.usefixtures("schema")
def test_every_kind_is_accepted_and_nothing_of_it_is_dropped(cluster: KubeCluster) -> None:
    documents = [thaw(d) for d in render_workspace_kinds(load_catalog(CATALOG)).documents]
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    cluster.kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", input=items)
