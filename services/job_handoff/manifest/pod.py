"""The pod of a run: one for all kinds, within Kubernetes' level `restricted`.

Users choose a profile, a file and values; every field of the pod is written here.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hub_ext.catalog.model import Catalog
from hub_ext.names import (
    ANNOTATION_USER,
    DOMAIN,
    LABEL_IMAGE_DIGEST,
    LABEL_JOB,
    LABEL_USER,
    label_value,
)
from hub_ext.render.fragment import literal
from hub_ext.render.pod import IMAGE_ENV, amounts, build_fragment
from hub_ext.render.storage import UserFacts, build_volumes
from hub_ext.units import format_bytes

from ..model import Git, HomeFolder, Notebook, Snapshot
from ..plan import Plan
from .site import RUNNER_FOLDER, SOURCE_FILE, SOURCE_FOLDER, WORK_FOLDER, Site

Object = dict[str, Any]
Part = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A volume and where it is mounted."""

COMPONENT: Final = "gpu-job"
"""Value of the label `component`, by which NetworkPolicies select pods of runs."""
SYNCED_CHECKPOINTS: Final = f"file://{WORK_FOLDER}/checkpoints/"
_DROPPED_ENV: Final = {*IMAGE_ENV, "JUPYTERHUB_DEFAULT_URL"}
_CHECKPOINTS: Final = "CHECKPOINT_URI"
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "gpu-workspaces"}


def facts_of(plan: Plan) -> UserFacts:
    """Say whom the pod belongs to."""
    return UserFacts(name=plan.user, team=plan.team)


def build_labels(catalog: Catalog, plan: Plan) -> dict[str, str]:
    """Build the labels of a run's object and of its pods."""
    labels = dict(build_fragment(catalog, plan.workspace, facts_of(plan)).labels)
    # A label of the profile that KubeSpawner or Kueue acts on would make the pod somebody else's.
    kept = {key: value for key, value in labels.items() if "/" in key and key.startswith(f"{DOMAIN}/")}
    return {
        **kept,
        **MANAGED_BY,
        "component": COMPONENT,
        LABEL_USER: label_value(plan.user),
        LABEL_JOB: plan.id,
        LABEL_IMAGE_DIGEST: plan.image.short_digest,
    }


def build_template(catalog: Catalog, plan: Plan, site: Site) -> Object:
    """Build the pod template of a run's main pods."""
    return {
        "metadata": {
            "labels": build_labels(catalog, plan),
            "annotations": {ANNOTATION_USER: plan.user},
        },
        "spec": build_spec(catalog, plan, site),
    }


def build_spec(catalog: Catalog, plan: Plan, site: Site) -> Object:
    """Build the pod's specification, with the one container that does the work."""
    pool, settings = plan.workspace.pool, site.settings
    parts = tuple(volume_parts(catalog, plan, site))
    tolerations = [t.model_dump(by_alias=True, exclude_none=True) for t in pool.tolerations] if pool else []
    spec: Object = {
        "restartPolicy": "Never",
        "serviceAccountName": settings.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": int(settings.grace.total_seconds()),
        "securityContext": build_pod_security(site),
        "containers": [build_container(catalog, plan, site, [mount for _, mount in parts])],
        "volumes": [dict(volume) for volume, _ in parts],
    }
    optional = {
        "nodeSelector": dict(pool.node_selector) if pool else None,
        "tolerations": tolerations,
        "imagePullSecrets": [{"name": name} for name in plan.pull_secrets],
        "runtimeClassName": pool.runtime_class if pool else None,
        "schedulerName": pool.scheduler if pool else None,
    }
    return spec | {key: value for key, value in optional.items() if value}


def build_container(
    catalog: Catalog, plan: Plan, site: Site, mounts: list[Mapping[str, Any]], *, name: str = "main"
) -> Object:
    """Build the container that fetches the source, runs it and brings back what it made."""
    container: Object = {
        "name": name,
        "image": str(plan.image),
        "imagePullPolicy": "IfNotPresent",
        "command": runner_command("run"),
        "env": build_env(catalog, plan, site),
        "resources": build_resources(plan),
        "securityContext": build_container_security(plan, site),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [dict(mount) for mount in mounts],
    }
    if secret := site.settings.team_secrets.get(plan.team):
        container["envFrom"] = [{"secretRef": {"name": secret}}]
    return container


def runner_command(verb: str) -> list[str]:
    """Give the command line of the runner; everything else it reads from variables.

    It is put onto the path of this one process, so that the user's program does not see it.
    """
    root, _, package = RUNNER_FOLDER.rpartition("/")
    path = f"import sys; sys.path.insert(0, {root!r})"
    return ["python3", "-c", f"{path}; from {package}.__main__ import main; sys.exit(main({verb!r}))"]


def build_resources(plan: Plan) -> Object:
    """Build requests and limits, both complete: Trainer merges what a runtime says into what is left out."""
    requests, limits = amounts(plan.workspace)
    return {"requests": requests, "limits": limits}


def build_pod_security(site: Site) -> Object:
    """Build the pod's security context."""
    return {
        "runAsNonRoot": True,
        "fsGroup": site.settings.fs_group,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def build_container_security(plan: Plan, site: Site) -> Object:
    """Build the container's security context; a profile may say who it runs as, and nothing weaker."""
    security, settings = plan.workspace.security, site.settings
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": security.run_as_user or settings.run_as_user,
        "runAsGroup": settings.run_as_group if security.run_as_group is None else security.run_as_group,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def build_env(catalog: Catalog, plan: Plan, site: Site) -> list[Object]:
    """Build the variables: the catalog's, then the user's, then ours, which nothing replaces."""
    fragment = build_fragment(catalog, plan.workspace, facts_of(plan))
    theirs = {name: value for name, value in fragment.env.items() if name not in _DROPPED_ENV}
    checkpoints = plan.workspace.storage.checkpoints
    direct = checkpoints is not None and plan.team in site.settings.team_secrets
    ours = {
        **site.settings.fixed_environment,
        **plan.request.environment,
        "RUN_KIND": plan.kind.value,
        "RUN_NODES": str(plan.request.nodes),
        "HANDOFF_URL": site.settings.runner.url.rstrip("/") + "/",
        "HANDOFF_TOKEN": site.token,
        "HANDOFF_SPEC": json.dumps(build_runner_spec(plan, site, synced=not direct), ensure_ascii=False),
    }
    values = {name: literal(value) for name, value in (theirs | ours).items()}
    address = SYNCED_CHECKPOINTS
    if checkpoints is not None and direct:
        address = f"{literal(theirs[checkpoints.env].rstrip('/'))}/{_lineage(plan)}/"
    names = {_CHECKPOINTS, checkpoints.env if checkpoints is not None else _CHECKPOINTS}
    values |= dict.fromkeys(sorted(names), address)
    return [_run_name(plan), *({"name": name, "value": value} for name, value in values.items())]


def _lineage(plan: Plan) -> str:
    """Name what the checkpoints are called after; each run of a schedule has its own (`ids.read_token`)."""
    return "$(RUN_ID)" if plan.schedule is not None and not plan.continues else plan.lineage


def _run_name(plan: Plan) -> Object:
    """Tell the pod which run it is: each one of a schedule bears the name of its own Job."""
    if plan.schedule is None:
        return {"name": "RUN_ID", "value": plan.id}
    field = "metadata.labels['batch.kubernetes.io/job-name']"
    return {"name": "RUN_ID", "valueFrom": {"fieldRef": {"fieldPath": field}}}


def build_runner_spec(plan: Plan, site: Site, *, synced: bool) -> Object:
    """Build what the runner in the pod is told (see `runner.py`)."""
    request = plan.request
    return {
        "source": _source(plan, site),
        "entry": request.entry.model_dump(by_alias=True, mode="json"),
        "notebook": isinstance(request.entry, Notebook),
        "outputs": list(request.outputs),
        "logSize": site.settings.bounds.log_size,
        "fileSize": site.settings.bounds.output_size,
        "checkpoints": synced,
        "continues": plan.continues,
        "grace": int(site.settings.grace.total_seconds()),
    }


def _source(plan: Plan, site: Site) -> Object:
    match plan.request.source:
        case Snapshot(sha256=digest):
            inline = {"file": f"{SOURCE_FOLDER}/{SOURCE_FILE}"} if site.source_map else {}
            return {"type": "snapshot", "sha256": digest, **inline}
        case Git(url=url, commit=commit, patch=patch):
            return {"type": "git", "url": url, "commit": commit, "patch": patch}
        case HomeFolder(folder=folder):
            home = site.home[1]["mountPath"] if site.home else ""
            return {"type": "home", "folder": f"{home}/{folder or ''}".rstrip("/")}


def volume_parts(catalog: Catalog, plan: Plan, site: Site) -> Iterator[Part]:
    """Give the volumes: the runner, the source, the work folder, and what the profile may bring along."""
    yield _part("handoff", {"configMap": {"name": site.runner_map, "defaultMode": 0o555}}, RUNNER_FOLDER)
    if site.source_map:
        source = {"configMap": {"name": site.source_map, "defaultMode": 0o444}}
        yield _part("handoff-source", source, SOURCE_FOLDER)
    size = format_bytes(site.settings.work_size)
    yield (
        {"name": "handoff-work", "emptyDir": {"sizeLimit": size}},
        {
            "name": "handoff-work",
            "mountPath": WORK_FOLDER,
        },
    )
    if site.home is not None:
        yield site.home
    volumes, mounts = build_volumes(plan.workspace, facts_of(plan), labels=build_labels(catalog, plan))
    for volume, mount in zip(volumes, mounts, strict=True):
        if volume["name"] != "workspace-home" and _may_mount(volume, catalog):
            yield volume, mount


def _may_mount(volume: Mapping[str, Any], catalog: Catalog) -> bool:
    """Say whether a volume exists where runs are; a claim does only if the catalog says so."""
    claim = volume.get("persistentVolumeClaim")
    if claim is not None:
        return claim["claimName"] in catalog.jobs.claims
    return "emptyDir" in volume or "ephemeral" in volume


def _part(name: str, source: Mapping[str, Any], path: str) -> Part:
    return {"name": name, **source}, {"name": name, "mountPath": path, "readOnly": True}
