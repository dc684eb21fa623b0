"""Clusters, values and catalogs that checks are tried on: one that is well, and what can be wrong with it."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.rights import Rights, Rule, Where
from services.preflight.kinds import KINDS
from services.preflight.scene import HubFacts, Metrics, Objects, Scene, Trial

CATALOG: dict[str, Any] = {
    "apiVersion": "gpu-workspaces/v1",
    "kind": "Catalog",
    "images": {
        "torch": {
            "ref": f"registry.example.com/torch@sha256:{'a' * 64}",
            "displayName": "PyTorch",
            "cuda": "13.0",
        }
    },
    "pools": {
        "h200": {
            "nodeSelector": {"pool": "h200"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "gpu": {"product": "NVIDIA-H200", "sharing": "exclusive"},
            "priorityClass": "interactive",
            "runtimeClass": "nvidia",
        },
        "mig": {
            "nodeSelector": {"pool": "mig"},
            "gpu": {"product": "NVIDIA-H200", "sharing": "mig", "geometry": {"1g.18gb": 7}},
        },
        "turns": {
            "nodeSelector": {"pool": "turns"},
            "gpu": {
                "product": "NVIDIA-L40S",
                "sharing": "time-slicing",
                "replicas": 4,
                "renameByDefault": True,
            },
        },
    },
    "defaults": {
        "storage": {
            "home": {"size": "10Gi", "class": "fast", "accessMode": "ReadWriteOncePod"},
            "datasets": {"claim": "datasets", "mountPath": "/data"},
        }
    },
    "profiles": [
        {
            "name": name,
            "version": 1,
            "displayName": name,
            "images": ["torch"],
            "resources": {"cpu": 1, "memory": "4Gi", "gpu": gpu},
            "access": {"everyone": True},
        }
        for name, gpu in {
            "full": {"pool": "h200", "count": 2},
            "slice": {"pool": "mig", "slice": "1g.18gb"},
            "share": {"pool": "turns"},
        }.items()
    ],
}

VALUES: dict[str, Any] = {
    "hub": {
        "config": {"JupyterHub": {"spawner_class": "gpu-workspaces"}},
        "consecutiveFailureLimit": 0,
        "services": {"idle-culler": {}},
    },
    "singleuser": {
        "cloudMetadata": {"blockWithIptables": False},
        "networkPolicy": {"egressAllowRules": {"nonPrivateIPs": False}},
        "extraResource": {"limits": {"nvidia.com/gpu": 1}},
    },
    "cull": {"enabled": False},
}

RIGHTS = Rights(
    name="prepuller",
    rules=(
        Rule(where=Where.CLUSTER, resources=("nodes",), verbs=("list",), why="looks"),
        Rule(where=Where.WORKSPACES, resources=("pods",), verbs=("create",), why="pulls", optional=True),
    ),
)

METRICS = Metrics(
    fields=frozenset(
        {
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "DCGM_FI_DEV_GPU_UTIL",
            "DCGM_FI_PROF_DRAM_ACTIVE",
            "DCGM_FI_DEV_FB_USED",
        }
    ),
    pod_label="exported_pod",
)


HUB = HubFacts(
    version="5.5.4",
    spawner="hub_ext.spawner.WorkspaceSpawner",
    services={"prepuller": {"roles": ["gpu-workspaces-prepuller"], "admin": False}},
    health={"prepuller": ""},
    running=frozenset(),
)


def node(name: str, offers: Mapping[str, str], *, taints: Any = None, **labels: str) -> dict[str, Any]:
    known = {
        "nvidia.com/cuda.runtime-version.full": "13.0",
        "nvidia.com/cuda.driver-version.full": "580.95.05",
    }
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": known | {k.replace("__", "/"): v for k, v in labels.items()}},
        "spec": {"taints": taints or []},
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", **offers},
            "nodeInfo": {"kubeletVersion": "v1.36.1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def thing(kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= fields.pop("metadata", {})
    return {"kind": kind, "metadata": metadata, **fields}


def policy(name: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"component": "singleuser-server"}}
    return thing("NetworkPolicy", name, "jupyterhub", spec={"podSelector": selector, **spec})


def bound(role_kind: str, role: str, account: str, namespace: str = "") -> dict[str, Any]:
    return thing(
        "RoleBinding" if namespace else "ClusterRoleBinding",
        f"{role}-{account}",
        namespace,
        roleRef={"kind": role_kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": "jupyterhub"}],
    )


PRODUCT, SHARING = "nvidia.com/gpu.product", "nvidia.com/gpu.sharing-strategy"

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def on_gpu(phase: str = "Running", **limits: str) -> dict[str, Any]:
    """Somebody's pod that asks for GPUs."""
    containers = [{"name": "main", "resources": {"limits": limits}}, {"name": "bare"}]
    return thing("Pod", "training", "elsewhere", spec={"containers": containers}, status={"phase": phase})


OBJECTS: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS} | {
    "Pod": [on_gpu(**{"nvidia.com/mig-1g.18gb": "1"})],
    "Node": [
        node("h200-1", {"nvidia.com/gpu": "2"}, taints=[GPU_TAINT], pool="h200", **{PRODUCT: "NVIDIA-H200"}),
        node(
            "mig-1",
            {"nvidia.com/mig-1g.18gb": "7"},
            pool="mig",
            **{
                PRODUCT: "NVIDIA-H200",
                "nvidia.com/mig.strategy": "mixed",
                "nvidia.com/mig.config.state": "success",
            },
        ),
        node(
            "l40s-1",
            {"nvidia.com/gpu.shared": "4"},
            pool="turns",
            **{PRODUCT: "NVIDIA-L40S-SHARED", SHARING: "time-slicing", "nvidia.com/gpu.replicas": "4"},
        ),
    ],
    "Namespace": [
        thing(
            "Namespace",
            "jupyterhub",
            metadata={"labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        )
    ],
    "StorageClass": [
        thing(
            "StorageClass",
            "fast",
            provisioner="csi.example.com",
            volumeBindingMode="WaitForFirstConsumer",
            allowVolumeExpansion=True,
        )
    ],
    "CSIDriver": [thing("CSIDriver", "csi.example.com")],
    "VolumeSnapshotClass": [thing("VolumeSnapshotClass", "fast", driver="csi.example.com")],
    "PersistentVolumeClaim": [
        thing(
            "PersistentVolumeClaim",
            "datasets",
            "jupyterhub",
            spec={"accessModes": ["ReadOnlyMany"]},
            status={"phase": "Bound"},
        )
    ],
    "PriorityClass": [thing("PriorityClass", "interactive")],
    "RuntimeClass": [thing("RuntimeClass", "nvidia")],
    "DaemonSet": [
        thing(
            "DaemonSet",
            name,
            "gpu-operator",
            spec={"template": {"spec": {"containers": [{"name": name, "image": image}]}}},
        )
        for name, image in {
            "exporter": "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3",
            "toolkit": "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0",
        }.items()
    ],
    "NetworkPolicy": [policy("singleuser", policyTypes=["Ingress", "Egress"])],
    "ServiceAccount": [thing("ServiceAccount", "prepuller", "jupyterhub")],
    "ClusterRole": [
        thing("ClusterRole", "look", rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
    ],
    "ClusterRoleBinding": [bound("ClusterRole", "look", "prepuller")],
    "Role": [
        thing(
            "Role",
            "pull",
            "jupyterhub",
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}],
        )
    ],
    "RoleBinding": [bound("Role", "pull", "prepuller", "jupyterhub")],
}


@cache
def _catalog(text: str) -> Catalog:
    return load_catalog(json.loads(text))


def scene(
    *,
    objects: Mapping[str, list[dict[str, Any]] | None] | None = None,
    values: Mapping[str, Any] | None = None,
    layers: tuple[Mapping[str, Any], ...] = (),
    catalog: Mapping[str, Any] | None = None,
    metrics: Metrics | None = METRICS,
    trials: tuple[Trial, ...] | None = (),
    hub: HubFacts | None = HUB,
) -> Scene:
    """Make a scene that is well but for what is given; None takes a kind away."""
    found = {**copy.deepcopy(OBJECTS), **(objects or {})}
    return Scene(
        objects=Objects({kind: items for kind, items in found.items() if items is not None}),
        namespace="jupyterhub",
        hub_namespace="jupyterhub",
        catalog=_catalog(json.dumps({**CATALOG, **(catalog or {})})),
        values=VALUES if values is None else values,
        layers=tuple((f"{number}.yaml", layer) for number, layer in enumerate(layers)),
        metrics=metrics,
        trials=trials,
        hub=hub,
        rights=(RIGHTS,),
    )
