"""WorkspaceKind of Kubeflow Workspaces v2: one per profile name, with its versions and choices as options.

Kubeflow lets a user combine any image with any pod configuration; what the catalog does not offer together
is denied by a filter rule. Volumes, variables and security stand once per kind, so they are those of the
newest version.

Source: kubeflow.org/v1beta1 WorkspaceKind (kubeflow/notebooks, branch notebooks-v2).

Pure: no clock, no network.
"""

from typing import Any

from ..catalog.compose import Workspace, combinations, compose
from ..catalog.model import Catalog, Profile, State
from ..errors import Finding
from .documents import thaw
from .fragment import VISIBLE_DEVICES
from .pod import container_security, pod_security
from .storage import has_names, volume_parts
from .target import MANAGED_BY, Code, Rendering, note
from .workspacekind_options import Offer, filter_rules, image_config, offers, pod_config

PORT = "jupyterlab"
ICON = "https://jupyter.org/assets/favicons/apple-touch-icon-152x152.png"
LOGO = "https://jupyter.org/assets/logos/rectanglelogo-greytext-orangebody-greymoons.svg"
SHORTEST_IDLE = 16
"""Seconds; `activityRules[].config.secondsSinceActive` takes no less."""


def render_workspace_kinds(catalog: Catalog) -> Rendering:
    """Render one WorkspaceKind for each profile of which a version can still be started."""
    documents, missing = [], {}
    for versions in _by_name(catalog):
        newest = compose(catalog, versions[0], {})
        offered = [
            offer
            for profile in versions
            for offer in offers(profile, [compose(catalog, profile, p) for p in combinations(profile)])
        ]
        documents.append(_kind(catalog, versions, newest, offered))
        missing[versions[0].name] = _missing(catalog, versions, newest)
    return Rendering(documents=tuple(documents), findings=_remarks(missing))


def _by_name(catalog: Catalog) -> list[list[Profile]]:
    """Group the versions that can be started by name, newest first, in the order of the catalog."""
    groups: dict[str, list[Profile]] = {}
    for profile in catalog.profiles:
        if profile.state is not State.RETIRED:
            groups.setdefault(profile.name, []).append(profile)
    return [sorted(group, key=lambda p: p.version, reverse=True) for group in groups.values()]


def _kind(
    catalog: Catalog, versions: list[Profile], newest: Workspace, offered: list[Offer]
) -> dict[str, Any]:
    profile = versions[0]
    spec: dict[str, Any] = {"spawner": _spawner(profile)}
    rules = [*_access_rules(catalog, profile), *filter_rules(offered)]
    if rules:
        spec["filterRules"] = rules
    idle = profile.session.idle_timeout
    if idle is not None:
        config = {"secondsSinceActive": max(SHORTEST_IDLE, int(idle.total_seconds()))}
        spec["activityRules"] = [{"config": config, "effect": {"pauseWorkspace": True}}]
    spec["podTemplate"] = _pod_template(catalog, newest, offered, probe=idle is not None)
    metadata = {"name": profile.name, "labels": MANAGED_BY}
    return {"apiVersion": "kubeflow.org/v1beta1", "kind": "WorkspaceKind", "metadata": metadata, "spec": spec}


def _spawner(profile: Profile) -> dict[str, Any]:
    name = profile.display_name if len(profile.display_name) > 1 else profile.name
    spawner: dict[str, Any] = {
        "displayName": name[:128],
        "description": (profile.description if len(profile.description) > 1 else name)[:4096],
        "hidden": profile.state is State.HIDDEN,
        "deprecated": profile.state is State.DEPRECATED,
        "icon": {"url": ICON},
        "logo": {"url": LOGO},
    }
    if profile.state is State.DEPRECATED and len(profile.message) > 1:
        spawner["deprecationMessage"] = profile.message[:256]
    return spawner


def _access_rules(catalog: Catalog, profile: Profile) -> list[dict[str, Any]]:
    namespaces = _namespaces(catalog, profile)
    if namespaces is None:
        return []
    outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": namespaces}
    match = [{"matchNamespace": {"selector": {"matchExpressions": [outside]}}}]
    return [{"scope": "WORKSPACE_KIND", "effect": {"api": {"hide": True}}, "match": match}]


def _namespaces(catalog: Catalog, profile: Profile) -> list[str] | None:
    """Give the namespaces that a profile is offered in, or None if namespaces cannot say it."""
    access = profile.access
    if access is None or access.everyone or access.groups or access.users:
        return None
    namespaces = [catalog.teams[team].namespace for team in access.teams if team in catalog.teams]
    return [n for n in namespaces if n] if namespaces and all(namespaces) else None


def _pod_template(
    catalog: Catalog, newest: Workspace, offered: list[Offer], *, probe: bool
) -> dict[str, Any]:
    home = newest.storage.home
    template: dict[str, Any] = {"podMetadata": {"labels": dict(newest.profile.labels)}}
    if probe:
        template["activityProbe"] = {
            "minProbeIntervalSeconds": 60,
            "probeIntervalSeconds": 300,
            "jupyter": {"lastActivity": True, "portId": PORT},
        }
    template |= {
        "volumeMounts": {"home": home.mount_path if home else "/home/jovyan"},
        "ports": [{"id": PORT, "defaultDisplayName": "JupyterLab", "protocol": "HTTP"}],
        "extraEnv": _environment(newest, offered),
        **_volumes(newest),
        "securityContext": pod_security(newest.security),
        "containerSecurityContext": container_security(newest.security),
        "options": {
            "imageConfig": image_config(catalog, offered, port=PORT),
            "podConfig": pod_config(offered),
        },
    }
    return template


def _environment(newest: Workspace, offered: list[Offer]) -> list[dict[str, str]]:
    env = {"NB_PREFIX": '{{ httpPathPrefix "jupyterlab" }}'} | dict(newest.environment)
    if all(offer.workspace.gpu is None for offer in offered):
        env[VISIBLE_DEVICES] = "void"
    return [{"name": name, "value": value} for name, value in env.items()]


def _volumes(newest: Workspace) -> dict[str, Any]:
    kept = [part for part in volume_parts(newest) if not has_names(part)]
    volumes, mounts = [thaw(v) for v, _ in kept], [thaw(m) for _, m in kept]
    return {"extraVolumeMounts": mounts, "extraVolumes": volumes} if kept else {}


def _missing(catalog: Catalog, versions: list[Profile], newest: Workspace) -> list[str]:
    """Name what one kind says that Kubeflow cannot, by the keys of `_MESSAGES`."""
    profile, pool, storage = versions[0], newest.pool, newest.storage
    public = profile.access is None or profile.access.everyone
    images = [catalog.images[key] for key in profile.images]
    said = {
        "access": not public and _namespaces(catalog, profile) is None,
        "session.maxDuration": profile.session.max_duration is not None,
        "price": newest.price is not None,
        "security.networkProfile": profile.security.network_profile is not None,
        "storage.home": storage.home is not None,
        "storage.checkpoints": storage.checkpoints is not None,
        "storage.workDir": storage.work_dir is not None,
        "storage.mounts": any(has_names(part) for part in volume_parts(newest)),
        "resources.pool": pool is not None
        and bool(pool.runtime_class or pool.priority_class or pool.scheduler),
        "images": any(image.pull_secrets or image.command for image in images),
        "choices.image.custom": any(choice.custom for choice in profile.questions.values()),
        "version": any(_kind_level(other) != _kind_level(profile) for other in versions[1:]),
    }
    return [field for field, missing in said.items() if missing]


def _remarks(missing: dict[str, list[str]]) -> tuple[Finding, ...]:
    """Say what is missing once per field, with the profiles that it concerns."""
    fields: dict[str, list[str]] = {}
    for profile, names in missing.items():
        for field in names:
            fields.setdefault(field, []).append(profile)
    return tuple(
        note(Code.NOT_EXPRESSIBLE, f"profiles[*].{field}", f"{_MESSAGES[field]} ({', '.join(profiles)})")
        for field, profiles in fields.items()
    )


def _kind_level(profile: Profile) -> tuple[Any, ...]:
    return profile.storage, profile.environment, profile.security, profile.session, profile.access


_MESSAGES = {
    "access": "Kubeflow knows namespaces and no groups; restrict this kind by other means",
    "session.maxDuration": "Kubeflow has no longest duration; only the idle time is rendered",
    "price": "Kubeflow shows no price",
    "security.networkProfile": "Kubeflow puts no label of a version on pods; select by the kind's own labels",
    "storage.home": "users of Kubeflow pick the home volume themselves; only its mount path is rendered",
    "storage.checkpoints": "Kubeflow fills in no user or team, so the address is left out",
    "storage.workDir": "Kubeflow has no working directory",
    "storage.mounts": "Kubeflow fills in no user or team, so mounts of such folders are left out",
    "resources.pool": "Kubeflow has no runtime class, priority class or scheduler per option",
    "images": "Kubeflow has no pull secret or start command per image; name the secret in the ServiceAccount",
    "choices.image.custom": "Kubeflow takes no typed image; only the listed ones are rendered",
    "version": "storage, variables, security, session and access of older versions differ; "
    "Kubeflow has them once per kind, so those of the newest version are rendered",
}
