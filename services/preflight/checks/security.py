"""What keeps users apart, and from the cluster.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hub_ext.errors import Severity

from ..problems import Check, Problem
from ..scene import Scene
from .workspaces import unrestricted

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"


def pod_security(scene: Scene) -> Iterator[Problem]:
    for name in scene.namespaces:
        namespace = scene.objects.named("Namespace", name)
        if namespace is None:
            yield Problem(
                message=f"there is no namespace {name}", help="Create it.", path=f"namespaces/{name}"
            )
            continue
        level = (namespace["metadata"].get("labels") or {}).get(_ENFORCE)
        if level != "restricted":
            yield Problem(
                message=f"the API server would take privileged pods in {name}",
                evidence=f"label {_ENFORCE} is {level or 'not set'}",
                help=f"Label the namespace {_ENFORCE}=restricted; all pods of this bundle pass it.",
                path=f"namespaces/{name}",
                severity=Severity.WARNING,
            )


def root_user(scene: Scene) -> Iterator[Problem]:
    uids = {
        "singleuser.uid": scene.value("singleuser.uid"),
        "hub.config.KubeSpawner.uid": scene.value("hub.config.KubeSpawner.uid"),
    }
    for path, uid in uids.items():
        if uid == 0:
            yield Problem(
                message="workspaces run as root",
                evidence=f"{path}: 0",
                help="Take it out: images of this bundle run as 1000.",
                path=path,
            )


def privilege_escalation(scene: Scene) -> Iterator[Problem]:
    sudo = scene.value("singleuser.extraEnv.GRANT_SUDO")
    if scene.value("singleuser.allowPrivilegeEscalation") or sudo in ("yes", "1", 1, True):
        yield Problem(
            message="programs in workspaces may become root",
            evidence="singleuser.allowPrivilegeEscalation" if not sudo else "singleuser.extraEnv.GRANT_SUDO",
            help="Take it out. Software belongs into the image, or into an environment in the home.",
            path="singleuser.allowPrivilegeEscalation",
        )


def metadata_blocked(scene: Scene) -> Iterator[Problem]:
    """The chart blocks the cloud's metadata either by a privileged container, or not by itself."""
    blocks = scene.value("singleuser.cloudMetadata.blockWithIptables")
    egress = scene.value("singleuser.networkPolicy.egressAllowRules.nonPrivateIPs")
    enabled = scene.value("singleuser.networkPolicy.enabled")
    if blocks is False and enabled is False:
        yield Problem(
            message="workspaces can ask the cloud for the credentials of their node",
            evidence="cloudMetadata.blockWithIptables: false and networkPolicy.enabled: false",
            help="Enable the NetworkPolicy: helm-values/layers/network.yaml.",
            path="singleuser.cloudMetadata",
        )
    elif blocks is not False:
        yield Problem(
            message="every workspace starts a privileged container to block the cloud's metadata",
            evidence="singleuser.cloudMetadata.blockWithIptables is true, as the chart has it",
            help="Set it to false and block by NetworkPolicy: pod security `restricted` refuses the "
            "container.",
            path="singleuser.cloudMetadata.blockWithIptables",
            severity=Severity.WARNING,
        )
    if blocks is False and enabled is not False and egress is not False:
        yield Problem(
            message="some addresses of the cloud's metadata stay reachable",
            evidence="egressAllowRules.nonPrivateIPs leaves out 169.254.169.254 alone, not 168.63.129.16",
            help="Take the layer helm-values/layers/network.yaml, which names what may be reached.",
            path="singleuser.networkPolicy.egressAllowRules",
            severity=Severity.NOTE,
        )


def account_tokens(scene: Scene) -> Iterator[Problem]:
    account = scene.value("singleuser.serviceAccountName")
    mounted = scene.value("hub.config.KubeSpawner.automount_service_account_token")
    if account and mounted is not False:
        yield Problem(
            message="workspaces carry the token of a ServiceAccount",
            evidence=f"singleuser.serviceAccountName: {account}",
            help="Set hub.config.KubeSpawner.automount_service_account_token: false.",
            path="singleuser.serviceAccountName",
        )


def gpu_variable(scene: Scene) -> Iterator[Problem]:
    if scene.value("singleuser.extraEnv.NVIDIA_VISIBLE_DEVICES") is not None:
        yield Problem(
            message="a variable gives every workspace GPUs that the cluster did not give it",
            evidence="singleuser.extraEnv.NVIDIA_VISIBLE_DEVICES",
            help="Take it out: the device plugin sets it.",
            path="singleuser.extraEnv.NVIDIA_VISIBLE_DEVICES",
        )


def running_as_restricted(scene: Scene) -> Iterator[Problem]:
    """Say which pods of today the level `restricted` would refuse, before it is enforced."""
    for namespace in scene.namespaces:
        for pod in scene.objects.inside("Pod", namespace):
            if reasons := list(unrestricted(pod.get("spec") or {})):
                where = f"{namespace}/{pod['metadata']['name']}"
                yield Problem(
                    message=f"pod {where} has rights over its node",
                    evidence=", ".join(reasons),
                    help="No part of this bundle needs them.",
                    path=f"pods/{where}",
                )


CHECKS = (
    Check(
        code="pod-security",
        title="The API server refuses pods with rights over nodes",
        kinds=("Namespace",),
        run=pod_security,
    ),
    Check(
        code="host-access",
        title="No running workspace has rights over its node",
        kinds=("Pod",),
        run=running_as_restricted,
    ),
    Check(code="root-user", title="Workspaces do not run as root", needs=("values",), run=root_user),
    Check(
        code="privilege-escalation",
        title="Programs cannot gain rights",
        needs=("values",),
        run=privilege_escalation,
    ),
    Check(
        code="cloud-metadata",
        title="The cloud's metadata is out of reach",
        needs=("values",),
        run=metadata_blocked,
    ),
    Check(
        code="account-token",
        title="Workspaces have no token of the cluster",
        needs=("values",),
        run=account_tokens,
    ),
    Check(
        code="gpu-variable",
        title="No setting goes past the device plugin",
        needs=("values",),
        run=gpu_variable,
    ),
)
