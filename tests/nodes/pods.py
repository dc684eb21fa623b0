"""Pods for tests on real nodes, as the `restricted` pod-security level wants them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.devcluster import build

HELPER = "helper"
"""Image with a shell and busybox's tools."""
PORT = 8080
SERVE = f"mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec busybox httpd -f -p {PORT} -h /tmp/www"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def build_namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}


def build_pod(
    name: str,
    namespace: str,
    *,
    node: str,
    command: Sequence[str] = ("sleep", "infinity"),
    limits: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A pod on one node, whatever the node's taints."""
    container = {
        "name": "main",
        "image": build.image_reference(HELPER),
        "imagePullPolicy": "Never",
        "command": list(command),
        "resources": {"limits": {"cpu": "100m", "memory": "64Mi", **(limits or {})}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "automountServiceAccountToken": False,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


def build_server(name: str, namespace: str, *, node: str) -> list[dict[str, Any]]:
    """A pod that answers with its name on `PORT`, and a Service for it on port 80."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": PORT}]},
    }
    return [build_pod(name, namespace, node=node, command=["sh", "-c", SERVE]), service]
