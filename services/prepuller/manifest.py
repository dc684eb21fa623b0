"""The pod that fetches one image to one node, and pins it there when it has ended.

An init container copies a static busybox to a shared folder; the second container runs it as `true` in the
image that is to be fetched. So the image needs no shell and nothing of it runs. When both have ended, the
pod takes no room on the node, and the kubelet's image collector still counts its image as used
(`image_gc_manager.go`, `detectImages`: ended containers of pods that exist are users).

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hub_ext.names import object_name

from .pods import ANNOTATION_NODE, MAIN, TOOL, build_pull_labels
from .settings import VISIBLE_DEVICES, Pods, Settings
from .wants import Want

_FOLDER: Final = "/.gpu-workspaces-prepull"
_PROGRAM: Final = f"{_FOLDER}/true"
_EVICTABLE: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Without it a pull keeps the autoscaler from taking an empty node away: it has a volume and no owner."""
_REQUESTS: Final = {"cpu": "1m", "memory": "8Mi"}
_LIMITS: Final = {"cpu": "100m", "memory": "64Mi"}


def pod_name(want: str, node: str) -> str:
    """Name the pod of an image on a node: the same at each try, so that no restart makes a second one."""
    return object_name("pull", node, want)


def build_pull_pod(
    want: Want,
    node: str,
    *,
    settings: Settings,
    tolerations: Sequence[dict[str, Any]] = (),
    pools: Sequence[str] = (),
) -> dict[str, Any]:
    """Build the pod. It fits the `restricted` pod-security level and asks for no GPU."""
    pods = settings.pods
    mount = {"name": TOOL, "mountPath": _FOLDER}
    container = {"securityContext": _security(pods), "resources": {"requests": _REQUESTS, "limits": _LIMITS}}
    environment = {**pods.environment, VISIBLE_DEVICES: "void"}
    tool = {
        **container,
        "name": TOOL,
        "image": pods.tool,
        "imagePullPolicy": "IfNotPresent",
        "command": [pods.tool_path, "cp", pods.tool_path, _PROGRAM],
        "volumeMounts": [mount],
    }
    main = {
        **container,
        "name": MAIN,
        "image": want.image,
        "imagePullPolicy": settings.shared.pull_policy or ("Always" if want.moves else "IfNotPresent"),
        "command": [_PROGRAM],
        "workingDir": "/",
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "volumeMounts": [{**mount, "readOnly": True}],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": max(1, int(settings.limits.timeout.total_seconds())),
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "serviceAccountName": pods.service_account,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "affinity": {"nodeAffinity": _only(node)},
        "tolerations": list(tolerations),
        "initContainers": [tool],
        "containers": [main],
        "volumes": [{"name": TOOL, "emptyDir": {"sizeLimit": "16Mi"}}],
    }
    if want.secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in want.secrets]
    if want.runtime_class:
        spec["runtimeClassName"] = want.runtime_class
    if pods.priority_class:
        spec["priorityClassName"] = pods.priority_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(want.id, node),
            "namespace": pods.namespace,
            "labels": build_pull_labels(want.id, pools),
            "annotations": {_EVICTABLE: "true", **pods.annotations, ANNOTATION_NODE: node},
        },
        "spec": spec,
    }


def _security(pods: Pods) -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": pods.run_as_user,
        "runAsGroup": pods.run_as_user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _only(node: str) -> dict[str, Any]:
    """Build the affinity that daemon sets use: this node, through the scheduler."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
