"""From a workspace of the catalog to what must be true of its pod.

`build_fragment` says it, `fragment.apply` puts it onto the pod that KubeSpawner made.

Pure: no clock, no network.
"""

import json
from typing import Any

from ..catalog.compose import Workspace
from ..catalog.gpus import GpuGrant, grant
from ..catalog.model import Catalog, Security, Team
from ..names import (
    ANNOTATION_CHOICES,
    ANNOTATION_SERVER,
    ANNOTATION_USER,
    LABEL_COST_CENTER,
    LABEL_GPU_SHARING,
    LABEL_IMAGE_DIGEST,
    LABEL_NETWORK_PROFILE,
    LABEL_POOL,
    LABEL_PROFILE,
    LABEL_PROFILE_VERSION,
    LABEL_TEAM,
    LABEL_USER,
    label_value,
)
from ..units import format_bytes, format_cpu
from .documents import freeze
from .fragment import VISIBLE_DEVICES, PodFragment, apply
from .storage import UserFacts, build_home_claim, build_volumes, fill_in, home_claim_name

__all__ = [
    "PodFragment",
    "UserFacts",
    "apply",
    "build_claim",
    "build_fragment",
    "gpu_grant",
    "home_claim_name",
]

IMAGE_ENV = ("JUPYTER_IMAGE", "JUPYTER_IMAGE_SPEC")
"""Where KubeSpawner tells a server which image it runs (`KubeSpawner.get_env`)."""

DEFAULT_URL = "JUPYTERHUB_DEFAULT_URL"
"""Where the hub tells a server which page opens first (`Spawner.get_env`)."""


def gpu_grant(workspace: Workspace) -> GpuGrant | None:
    """Say what GPU a workspace asks for; None for none.

    Raises
    ------
    LookupError
        The workspace names a pool that the catalog lacks or that has no GPU. A loaded catalog has neither.
    """
    if workspace.gpu is None:
        return None
    if workspace.pool is None or workspace.pool.gpu is None:
        raise LookupError(f"pool {workspace.gpu.pool!r} of {workspace.profile.label} has no GPU")
    return grant(workspace.pool.gpu, workspace.gpu)


def build_fragment(catalog: Catalog, workspace: Workspace, user: UserFacts) -> PodFragment:
    """Say what must be true of the pod of one workspace of one user."""
    labels, annotations = build_labels(catalog, workspace, user), build_annotations(workspace, user)
    requests, limits = amounts(workspace)
    volumes, mounts = build_volumes(workspace, user, labels=labels)
    pool, security = workspace.pool, workspace.security
    tolerations = pool.tolerations if pool else ()
    return PodFragment(
        image=str(workspace.reference),
        pull_secrets=workspace.image.pull_secrets,
        requests=freeze(requests),
        limits=freeze(limits),
        env=freeze(_environment(workspace, user)),
        command=workspace.image.command,
        working_dir=workspace.storage.work_dir,
        node_selector=freeze(pool.node_selector if pool else {}),
        tolerations=tuple(freeze(t.model_dump(by_alias=True, exclude_none=True)) for t in tolerations),
        volumes=freeze(volumes),
        mounts=freeze(mounts),
        labels=freeze(dict(workspace.profile.labels) | labels),
        annotations=freeze(dict(workspace.profile.annotations) | annotations),
        runtime_class=pool.runtime_class if pool else None,
        priority_class=pool.priority_class if pool else None,
        scheduler=pool.scheduler if pool else None,
        service_account=security.service_account,
        service_account_token=security.service_account_token,
        pod_security=freeze(pod_security(security)),
        container_security=freeze(container_security(security)),
    )


def build_claim(catalog: Catalog, workspace: Workspace, user: UserFacts) -> dict[str, Any] | None:
    """Build the PersistentVolumeClaim of the home; None if the hub's own home is used, or a shared claim."""
    team = catalog.teams.get(user.team or "")
    labels = {LABEL_USER: label_value(user.name)} | _team_labels(user, team)
    return build_home_claim(workspace, user, labels=labels, annotations={ANNOTATION_USER: user.name})


def build_labels(catalog: Catalog, workspace: Workspace, user: UserFacts) -> dict[str, str]:
    """Build the labels that say what a pod is, whose, and who pays."""
    profile = workspace.profile
    gpu = gpu_grant(workspace)
    labels = {
        LABEL_PROFILE: profile.name,
        LABEL_PROFILE_VERSION: str(profile.version),
        LABEL_USER: label_value(user.name),
        **_team_labels(user, catalog.teams.get(user.team or "")),
        LABEL_POOL: workspace.pool_name,
        LABEL_GPU_SHARING: gpu.sharing.value if gpu else "",
        LABEL_IMAGE_DIGEST: workspace.reference.short_digest,
        LABEL_NETWORK_PROFILE: workspace.security.network_profile or "",
    }
    return {key: value for key, value in labels.items() if value}


def _team_labels(user: UserFacts, team: Team | None) -> dict[str, str]:
    labels = {LABEL_TEAM: user.team} if user.team else {}
    cost_center = {LABEL_COST_CENTER: team.cost_center} if team and team.cost_center else {}
    return labels | cost_center


def build_annotations(workspace: Workspace, user: UserFacts) -> dict[str, str]:
    """Build the annotations: exact names, and what was picked."""
    picks = json.dumps(dict(workspace.picks), sort_keys=True, ensure_ascii=False)
    return {ANNOTATION_USER: user.name, ANNOTATION_SERVER: user.server_name, ANNOTATION_CHOICES: picks}


def amounts(workspace: Workspace) -> tuple[dict[str, str], dict[str, str]]:
    """Give the requests and the limits of the notebook container."""
    cpu, memory, gpu = workspace.cpu, workspace.memory, gpu_grant(workspace)
    requests = {"cpu": format_cpu(cpu.request), "memory": format_bytes(memory.request)}
    limits: dict[str, str] = {}
    if cpu.limit is not None:
        limits["cpu"] = format_cpu(cpu.limit)
    if memory.limit is not None:
        limits["memory"] = format_bytes(memory.limit)
    if gpu is not None and gpu.count:
        requests[gpu.resource] = limits[gpu.resource] = str(gpu.count)
    return requests, limits


def _environment(workspace: Workspace, user: UserFacts) -> dict[str, str]:
    cpu, memory, checkpoints = workspace.cpu, workspace.memory, workspace.storage.checkpoints
    env = dict(workspace.environment)
    env |= dict.fromkeys(IMAGE_ENV, str(workspace.reference))
    env |= {"CPU_GUARANTEE": _cores(cpu.request), "MEM_GUARANTEE": str(memory.request)}
    if cpu.limit is not None:
        env["CPU_LIMIT"] = _cores(cpu.limit)
    if memory.limit is not None:
        env["MEM_LIMIT"] = str(memory.limit)
    if workspace.image.default_url is not None:
        env[DEFAULT_URL] = workspace.image.default_url
    if checkpoints is not None:
        env[checkpoints.env] = fill_in(checkpoints.uri, workspace, user)
    if workspace.gpu is None or not workspace.gpu.count:
        # CUDA images ask for all cards by default, and a container runtime that listens gives them.
        env[VISIBLE_DEVICES] = "void"
    else:
        env.pop(VISIBLE_DEVICES, None)
    return env


def _cores(millis: int) -> str:
    return str(millis / 1000)


def pod_security(security: Security) -> dict[str, Any]:
    """Build the pod's security context; with the catalog's defaults it fits `restricted`."""
    context: dict[str, Any] = {"seccompProfile": {"type": security.seccomp_profile}}
    if security.run_as_user != 0:
        context["runAsNonRoot"] = True
    if security.fs_group is not None:
        context["fsGroup"] = security.fs_group
    return context


def container_security(security: Security) -> dict[str, Any]:
    """Build the container's security context; with the catalog's defaults it fits `restricted`."""
    context: dict[str, Any] = {"allowPrivilegeEscalation": security.allow_privilege_escalation}
    if not security.allow_privilege_escalation:
        context["capabilities"] = {"drop": ["ALL"]}
    if security.run_as_user != 0:
        context["runAsNonRoot"] = True
    if security.run_as_user is not None:
        context["runAsUser"] = security.run_as_user
    if security.run_as_group is not None:
        context["runAsGroup"] = security.run_as_group
    context["seccompProfile"] = {"type": security.seccomp_profile}
    return context
