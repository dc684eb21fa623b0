"""The catalog of the golden files, and a pod as KubeSpawner makes one."""

from pathlib import Path
from typing import Any

import pytest

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog

CATALOG = Path(__file__).parents[2] / "golden" / "catalog.yaml"


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog(CATALOG)


@pytest.fixture
def baseline() -> dict[str, Any]:
    """What a hub with the chart's defaults asks for before any profile is chosen."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "jupyter-alice",
            "labels": {"component": "singleuser-server", "hub.jupyter.org/username": "alice"},
            "annotations": {"hub.jupyter.org/username": "alice"},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "notebook",
                    "image": "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0",
                    "args": ["jupyterhub-singleuser"],
                    "env": [
                        {"name": "JUPYTERHUB_USER", "value": "alice"},
                        {"name": "MEM_GUARANTEE", "value": "1073741824"},
                    ],
                    "resources": {"requests": {"memory": "1073741824"}, "limits": {}},
                    "securityContext": {"allowPrivilegeEscalation": False, "runAsUser": 1000},
                    "volumeMounts": [{"name": "volume-alice", "mountPath": "/home/jovyan"}],
                }
            ],
            "securityContext": {"fsGroup": 100},
            "tolerations": [
                {
                    "key": "hub.jupyter.org/dedicated",
                    "operator": "Equal",
                    "value": "user",
                    "effect": "NoSchedule",
                }
            ],
            "volumes": [{"name": "volume-alice", "persistentVolumeClaim": {"claimName": "claim-alice"}}],
        },
    }
