"""Which pods the API server is asked about: one of each profile in each namespace that it is started in.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hub_ext.catalog.compose import Workspace
from hub_ext.catalog.profiles import State
from hub_ext.render.baseline import bare_pod
from hub_ext.render.pod import UserFacts, apply, build_fragment

from .scene import Scene

USER: Final = "preflight"
_CHART_UID, _CHART_GID = 1000, 100
_DEDICATED: Final = [
    {"key": key, "operator": "Equal", "value": "user", "effect": "NoSchedule"}
    for key in ("hub.jupyter.org/dedicated", "hub.jupyter.org_dedicated")
]
"""What the chart tolerates for all workspaces, unless `scheduling.userPods.tolerations` says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One pod to ask about."""

    profile: str
    namespace: str
    pod: dict[str, Any]


def attempts(scene: Scene) -> Iterator[Attempt]:
    """Give one pod of each profile in each namespace that it is started in."""
    catalog = scene.catalog
    if catalog is None:
        return
    tried = set()
    for workspace in scene.workspaces:
        if workspace.profile.state is State.RETIRED:
            continue
        for team, namespace in _places(scene, workspace):
            if (workspace.profile.label, namespace) not in tried:
                tried.add((workspace.profile.label, namespace))
                fragment = build_fragment(catalog, workspace, UserFacts(name=USER, team=team))
                pod = apply(chart_pod(scene), fragment)
                pod["metadata"]["namespace"] = namespace
                yield Attempt(profile=workspace.profile.label, namespace=namespace, pod=pod)


def _places(scene: Scene, workspace: Workspace) -> Iterator[tuple[str | None, str]]:
    """Give the teams that may start it, with the namespaces of their workspaces."""
    teams = scene.catalog.teams if scene.catalog else {}
    if not teams:
        yield None, scene.namespace
    access = workspace.profile.access
    allowed = (access.teams if access else ()) or teams
    for name, team in teams.items():
        if name in allowed:
            yield name, team.namespace or scene.namespace


def chart_pod(scene: Scene) -> dict[str, Any]:
    """Build the pod that the chart's values give before any profile, as far as an API server minds."""
    pod = bare_pod(USER)
    spec, (container,) = pod["spec"], pod["spec"]["containers"]
    uid, gid = scene.value("singleuser.uid"), scene.value("singleuser.fsGid")
    container["securityContext"] = {
        "runAsUser": _CHART_UID if uid is None else uid,
        "allowPrivilegeEscalation": bool(scene.value("singleuser.allowPrivilegeEscalation")),
        **_mapping(scene.value("hub.config.KubeSpawner.container_security_context")),
    }
    spec["securityContext"] = {
        "fsGroup": _CHART_GID if gid is None else gid,
        **_mapping(scene.value("hub.config.KubeSpawner.pod_security_context")),
    }
    if account := scene.value("singleuser.serviceAccountName"):
        spec["serviceAccountName"] = account
    mounted = scene.value("hub.config.KubeSpawner.automount_service_account_token")
    spec["automountServiceAccountToken"] = bool(account) if mounted is None else mounted
    spec["nodeSelector"] = _mapping(scene.value("singleuser.nodeSelector"))
    own = scene.value("scheduling.userPods.tolerations")
    spec["tolerations"] = [*(_DEDICATED if own is None else own), *_items(scene, "extraTolerations")]
    spec["initContainers"] = [*_items(scene, "initContainers"), *_blocker(scene)]
    spec["containers"] += _items(scene, "extraContainers")
    spec.update(_mapping(scene.value("singleuser.extraPodConfig")))
    return pod


def _blocker(scene: Scene) -> list[dict[str, Any]]:
    """Build the container by which the chart blocks the cloud's metadata."""
    if scene.values is None or scene.value("singleuser.cloudMetadata.blockWithIptables") is False:
        return []
    security = {"privileged": True, "runAsUser": 0, "capabilities": {"add": ["NET_ADMIN"]}}
    image = "quay.io/jupyterhub/k8s-network-tools"
    return [{"name": "block-cloud-metadata", "image": image, "securityContext": security}]


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _items(scene: Scene, key: str) -> list[Any]:
    found = scene.value(f"singleuser.{key}")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
