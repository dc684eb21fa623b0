"""A service in a pod of its own: what the hub tells its processes, told by a Deployment.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Any, Final

from ..managed import CATALOG
from ..render.rights import PREFIX
from ..render.target import MANAGED_BY
from ..units import format_bytes
from .model import Installation, labels_of
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


def build_deployment(installation: Installation, name: str, package: str) -> list[dict[str, Any]]:
    """Build the Deployment, and the claim of its volume if it has one."""
    labels, volume = labels_of(name), installation.services[name].volume
    metadata = {
        "name": f"{PREFIX}-{name}",
        "namespace": installation.hub_namespace,
        "labels": {**labels, **MANAGED_BY},
    }
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
                "spec": _pod(installation, name, package),
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


def _pod(installation: Installation, name: str, package: str) -> dict[str, Any]:
    probe = _probe(installation.prefix_of(name))
    volumes: list[dict[str, Any]] = [
        {"name": "settings", "configMap": {"name": f"{PREFIX}-{name}"}},
        {"name": "catalog", "configMap": {"name": f"{PREFIX}-catalog"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    mounts = [
        {"name": "settings", "mountPath": f"{FOLDER}/settings"},
        # A whole folder: single files of a ConfigMap do not follow its changes.
        {"name": "catalog", "mountPath": f"{FOLDER}/catalog"},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
    ]
    if installation.services[name].volume:
        volumes.append({"name": "state", "persistentVolumeClaim": {"claimName": f"{PREFIX}-{name}"}})
        mounts.append({"name": "state", "mountPath": STATE})
    return {
        **_pull_secrets(installation),
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
                "image": str(installation.image or ""),
                "command": ["python3", "-m", package, "--config", f"{FOLDER}/settings/settings.yaml"],
                "env": _environment(installation, name),
                **_variables(installation.services[name].secret),
                "ports": [{"name": "http", "containerPort": SERVICE_PORT}],
                "readinessProbe": probe,
                # A busy node may take a minute to start it; only later is silence a reason to end it.
                "startupProbe": probe | {"periodSeconds": 5, "failureThreshold": 60},
                "livenessProbe": probe | {"failureThreshold": 6},
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


def _environment(installation: Installation, name: str) -> list[dict[str, Any]]:
    plain = {
        "JUPYTERHUB_SERVICE_NAME": name,
        "JUPYTERHUB_API_URL": f"http://hub:{HUB_PORT}{installation.base_url}hub/api",
        "JUPYTERHUB_SERVICE_URL": f"http://0.0.0.0:{SERVICE_PORT}",
        "JUPYTERHUB_BASE_URL": installation.base_url,
        "JUPYTERHUB_SERVICE_PREFIX": installation.prefix_of(name),
        "JUPYTERHUB_CLIENT_ID": f"service-{name}",
        CATALOG: f"{FOLDER}/catalog",
    }
    # The chart makes the token and keeps it in the hub's Secret.
    token = {"secretKeyRef": {"name": "hub", "key": f"hub.services.{name}.apiToken"}}
    return [
        *({"name": key, "value": value} for key, value in plain.items()),
        {"name": "JUPYTERHUB_API_TOKEN", "valueFrom": token},
    ]


def _variables(secret: str | None) -> dict[str, Any]:
    return {"envFrom": [{"secretRef": {"name": secret}}]} if secret else {}


def _pull_secrets(installation: Installation) -> dict[str, Any]:
    names = [{"name": name} for name in installation.pull_secrets]
    return {"imagePullSecrets": names} if names else {}


def _probe(prefix: str) -> dict[str, Any]:
    return {"httpGet": {"path": f"{prefix}health", "port": "http"}, "periodSeconds": 10}
