"""local-path-provisioner: volumes as folders, which keep their data for as long as their claim.

The default StorageClass is like a node's own disk: it binds with the first pod, to that pod's node, and
applies `fsGroup` (type `local`; with `hostPath` Kubernetes does not). `shared-path` is like a file server:
pods of all nodes may mount it. Neither grows volumes or enforces their size.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml

from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster

PROGRAMS = ("image:local-path-provisioner", "image:helper")
NAME = "local-path-provisioner"
NAMESPACE = "local-path-storage"
PROVISIONER = "rancher.io/local-path"
STORAGE_CLASS = "local-path"
SHARED_STORAGE_CLASS = "shared-path"
CONFIG_DIR = "/etc/config"
GROUP = "rbac.authorization.k8s.io"
READ = ["get", "list", "watch"]
WRITE = [*READ, "create", "patch", "update", "delete"]
RULES = [
    {
        "apiGroups": [""],
        "resources": ["nodes", "persistentvolumeclaims", "configmaps", "pods/log"],
        "verbs": READ,
    },
    {"apiGroups": [""], "resources": ["persistentvolumes", "pods"], "verbs": WRITE},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": READ},
]


def install(cluster: Cluster) -> Callable[[], None]:
    """Install it; what is returned waits until it can make volumes."""
    registry = Registry(cluster)
    folders = {node.name: str(node.state_dir / "volumes") for node in cluster.nodes.values()}
    account = {"name": NAME, "namespace": NAMESPACE}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": RULES},
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
        build_config(
            folders,
            shared=str(cluster.state_dir / "volumes"),
            helper=registry.publish_variant("helper", mark="volumes"),
        ),
        build_deployment(registry.publish_built("local-path-provisioner")),
        build_storage_class(),
        build_shared_storage_class(),
    )
    return lambda: cluster.wait_for(f"deployment/{NAME}", "condition=Available", namespace=NAMESPACE)


def build_storage_class() -> dict[str, Any]:
    """Build the default StorageClass."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true",
                "defaultVolumeType": "local",
            },
        },
        "provisioner": PROVISIONER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def build_shared_storage_class() -> dict[str, Any]:
    """Build the StorageClass whose volumes all nodes can mount."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": SHARED_STORAGE_CLASS, "annotations": {"defaultVolumeType": "hostPath"}},
        "provisioner": PROVISIONER,
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
    }


def build_config(folders: dict[str, str], *, shared: str, helper: str) -> dict[str, Any]:
    """Build the provisioner's ConfigMap: the folders of each node and of all, and the pod that makes volumes.

    All nodes see the host's files, so `shared` is the same folder everywhere.
    """
    nodes = [{"node": name, "paths": [folder]} for name, folder in folders.items()]
    classes = {
        STORAGE_CLASS: {"nodePathMap": nodes},
        SHARED_STORAGE_CLASS: {"sharedFileSystemPath": shared},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper-pod"},
        "spec": {
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "helper-pod", "image": helper, "imagePullPolicy": "IfNotPresent"}],
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "local-path-config", "namespace": NAMESPACE},
        "data": {
            "config.json": json.dumps({"storageClassConfigs": classes}),
            "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
            "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
            "helperPod.yaml": yaml.safe_dump(pod),
        },
    }


def build_deployment(image: str) -> dict[str, Any]:
    """Build the provisioner's Deployment."""
    labels = {"app": NAME}
    container = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["start", "--config", f"{CONFIG_DIR}/config.json"],
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "CONFIG_MOUNT_PATH", "value": f"{CONFIG_DIR}/"},
            {"name": "SERVICE_ACCOUNT_NAME", "value": NAME},
        ],
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_DIR}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": NAME,
                    "containers": [container],
                    "volumes": [{"name": "config", "configMap": {"name": "local-path-config"}}],
                },
            },
        },
    }
