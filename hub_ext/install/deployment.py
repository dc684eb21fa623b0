"""A service in a pod of its own: what the hub tells its processes, told by a Deployment.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Any, Final

from ..managed import CATALOG
from ..render.target import MANAGED_BY
from ..units import format_bytes
from .network import HUB_PORT, SERVICE_PORT

USER: Final = 1000
FOLDER: Final = "/etc/gpu-workspaces"
STATE: Final = "/var/lib/gpu-workspaces"
TO_HUB: Final = {"hub.jupyter.org/network-access-hub": "true"}
"""Label by which the chart's policy lets pods speak to the hub."""


def build_service(name: str, *, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    """Build the Service that proxy, workspaces and runs reach it by."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {**labels, **MANAGED_BY}},
        "spec": {"selector": labels, "ports": [{"name": "http", "port": SERVICE_PORT}]},
    }


def build_deployment(
    name: str,
    package: str,
    *,
    namespace: str,
    image: str,
    labels: dict[str, str],
    volume: int | None = None,
) -> list[dict[str, Any]]:
    """Build the Deployment, and the claim of its volume if it has one.

    Parameters
    ----------
    volume
        Size in bytes of a volume at `STATE`.
    """
    metadata = {"name": f"gpu-workspaces-{name}", "namespace": namespace, "labels": {**labels, **MANAGED_BY}}
    claim = [_claim(metadata, volume)] if volume else []
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            # Two at a time would both act on what they see.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": {**labels, **TO_HUB}},
                "spec": _pod(name, package, image, has_volume=bool(volume)),
            },
        },
    }
    return [*claim, deployment]


def _claim(metadata: dict[str, Any], size: int) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": format_bytes(size)}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _pod(name: str, package: str, image: str, *, has_volume: bool) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [
        {"name": "settings", "configMap": {"name": f"gpu-workspaces-{name}"}},
        {"name": "catalog", "configMap": {"name": "gpu-workspaces-catalog"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    mounts = [
        {"name": "settings", "mountPath": f"{FOLDER}/settings"},
        # A whole folder: single files of a ConfigMap do not follow its changes.
        {"name": "catalog", "mountPath": f"{FOLDER}/catalog"},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
    ]
    if has_volume:
        volumes.append({"name": "state", "persistentVolumeClaim": {"claimName": f"gpu-workspaces-{name}"}})
        mounts.append({"name": "state", "mountPath": STATE})
    return {
        "serviceAccountName": name,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": name,
                "image": image,
                "command": ["python3", "-m", package, "--config", f"{FOLDER}/settings/settings.yaml"],
                "env": _environment(name),
                "ports": [{"name": "http", "containerPort": SERVICE_PORT}],
                "readinessProbe": _probe(name),
                "livenessProbe": _probe(name) | {"failureThreshold": 6},
                "resources": {
                    "requests": {"cpu": "100m", "memory": "128Mi"},
                    "limits": {"memory": "1Gi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def _environment(name: str) -> list[dict[str, Any]]:
    plain = {
        "JUPYTERHUB_SERVICE_NAME": name,
        "JUPYTERHUB_API_URL": f"http://hub:{HUB_PORT}/hub/api",
        "JUPYTERHUB_SERVICE_URL": f"http://0.0.0.0:{SERVICE_PORT}",
        "JUPYTERHUB_CLIENT_ID": f"service-{name}",
        CATALOG: f"{FOLDER}/catalog",
    }
    # The chart makes the token and keeps it in the hub's Secret.
    token = {"secretKeyRef": {"name": "hub", "key": f"hub.services.{name}.apiToken"}}
    return [
        *({"name": key, "value": value} for key, value in plain.items()),
        {"name": "JUPYTERHUB_API_TOKEN", "valueFrom": token},
    ]


def _probe(name: str) -> dict[str, Any]:
    return {"httpGet": {"path": f"/services/{name}/health", "port": "http"}, "periodSeconds": 10}
