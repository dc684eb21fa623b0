"""What a profile makes true of a pod, and how that is put onto a pod that already exists.

The pod comes from KubeSpawner with whatever the admin configured there: volumes, environment,
tolerations for a user pool, sidecars. A fragment says only what the catalog decides. Applying it
never edits its inputs, gives the same pod when done twice, and takes every accelerator of the
baseline away first: what a user gets is what the profile says, and nothing that was left over.

Pure: no clock, no network.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ..gpu.resources import is_accelerator
from ..names import DOMAIN
from .documents import thaw

Object = Mapping[str, Any]
"""Part of a manifest, in the spelling of the Kubernetes API."""

NOTEBOOK = "notebook"
"""Name that KubeSpawner gives the user's container (`kubespawner.objects.make_pod`)."""

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""Set by the device plugin for the cards that were given; a value in the pod would overrule it."""

ROOT_DIR = "JUPYTERHUB_ROOT_DIR"
"""Folder of the Jupyter server; it would overrule the working directory."""

_FOLDER = "workspace-folder"
"""Init container that makes the working directory; a container runtime would make it as root."""

_REPLACED_ENV = frozenset({VISIBLE_DEVICES, "CPU_GUARANTEE", "CPU_LIMIT", "MEM_GUARANTEE", "MEM_LIMIT"})
"""Variables that say what the container got. The hub's own are about the baseline (`Spawner.get_env`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFragment:
    """What must be true of a user's pod; all parts are read-only.

    A field of `None` leaves the pod's own setting alone.
    """

    image: str
    pull_policy: str | None = None
    pull_secrets: tuple[str, ...] = ()
    requests: Mapping[str, str]
    """By resource name; `cpu` and `memory` named here or in `limits` replace the pod's pair."""
    limits: Mapping[str, str]
    env: Mapping[str, str]
    """Literal values; Kubernetes does not expand `$(NAME)` in them."""
    command: tuple[str, ...] = ()
    """Replaces the start command; empty keeps it."""
    working_dir: str | None = None
    """Folder to start in. It is made if it is missing, by an init container that runs as the user."""
    node_selector: Mapping[str, str]
    tolerations: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()
    mounts: tuple[Object, ...] = ()
    """Each takes its mount path over from whatever the pod had there."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    runtime_class: str | None = None
    priority_class: str | None = None
    scheduler: str | None = None
    service_account: str | None = None
    pod_security: Object
    container_security: Object
    service_account_token: bool = False


def apply(pod: Object, fragment: PodFragment) -> dict[str, Any]:
    """Give a new pod that is the old one with the fragment made true.

    Parameters
    ----------
    pod
        A Pod as a dict in API spelling. It is not changed.

    Raises
    ------
    ValueError
        The pod has no container named `notebook`.
    """
    result: dict[str, Any] = thaw(pod)
    spec = result.setdefault("spec", {})
    _apply_metadata(result.setdefault("metadata", {}), fragment)
    for container in _containers(spec):
        _strip_accelerators(container)
    notebook = next((c for c in spec.get("containers", ()) if c.get("name") == NOTEBOOK), None)
    if notebook is None:
        raise ValueError(f"the pod has no container named {NOTEBOOK!r} to put the profile on")
    _apply_container(notebook, fragment)
    _apply_volumes(spec, notebook, fragment)
    _apply_placement(spec, fragment)
    _apply_security(spec, notebook, fragment)
    _apply_working_dir(spec, notebook, fragment)
    return result


def merge_tolerations(*lists: Iterable[Object]) -> list[dict[str, Any]]:
    """Join lists of tolerations; of equal ones the first stays.

    Equal means equal in effect: an absent operator is `Equal` and an absent value is the empty text.
    """
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for toleration in (t for tolerations in lists for t in tolerations):
        merged.setdefault(_toleration_key(toleration), thaw(toleration))
    return list(merged.values())


def _toleration_key(toleration: Object) -> tuple[Any, ...]:
    operator = toleration.get("operator") or "Equal"
    value = "" if operator == "Exists" else toleration.get("value") or ""
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    return (key, operator, value, effect, toleration.get("tolerationSeconds"))


def _apply_metadata(metadata: dict[str, Any], fragment: PodFragment) -> None:
    for field, ours in (("labels", fragment.labels), ("annotations", fragment.annotations)):
        kept = {k: v for k, v in (metadata.get(field) or {}).items() if not k.startswith(f"{DOMAIN}/")}
        metadata[field] = kept | dict(ours)


def _containers(spec: Object) -> list[dict[str, Any]]:
    return [c for field in ("initContainers", "containers") for c in spec.get(field) or ()]


def _strip_accelerators(container: dict[str, Any]) -> None:
    for amounts in (container.get("resources") or {}).values():
        if isinstance(amounts, dict):
            for name in [n for n in amounts if is_accelerator(n)]:
                del amounts[name]


def _apply_container(container: dict[str, Any], fragment: PodFragment) -> None:
    container["image"] = fragment.image
    if fragment.pull_policy is not None:
        container["imagePullPolicy"] = fragment.pull_policy
    if fragment.command:
        container["args"] = list(fragment.command)
    container["resources"] = _resources(container.get("resources") or {}, fragment)
    replaced = _REPLACED_ENV | set(fragment.env) | ({ROOT_DIR} if fragment.working_dir else set())
    kept = [e for e in container.get("env") or () if e["name"] not in replaced]
    ours = [{"name": name, "value": literal(value)} for name, value in fragment.env.items()]
    _set(container, "env", kept + ours)


def _resources(existing: Object, fragment: PodFragment) -> dict[str, Any]:
    spoken_for = set(fragment.requests) | set(fragment.limits)
    result = dict(existing)
    for field, ours in (("requests", fragment.requests), ("limits", fragment.limits)):
        kept = {k: v for k, v in (existing.get(field) or {}).items() if k not in spoken_for}
        result[field] = kept | dict(ours)
    return result


def literal(value: str) -> str:
    """Escape a value of an environment variable so that Kubernetes keeps every character of it.

    Source: `$(NAME)` is expanded and `$$` is read as `$` (core/v1 EnvVar.value).
    """
    return value.replace("$", "$$")


def _apply_volumes(spec: dict[str, Any], notebook: dict[str, Any], fragment: PodFragment) -> None:
    existing = spec.get("volumes") or []
    known = {_claim(v): v["name"] for v in existing if _claim(v)}
    # A claim that the pod has already is mounted through the volume that it has, not through a second one.
    names = {v["name"]: known.get(_claim(v), v["name"]) for v in fragment.volumes}
    ours = [thaw(v) for v in fragment.volumes if names[v["name"]] == v["name"]]
    paths = {_path(mount) for mount in fragment.mounts}
    mounts = notebook.get("volumeMounts") or []
    kept = [m for m in mounts if _path(m) not in paths]
    new = [thaw(m) | {"name": names.get(m["name"], m["name"])} for m in fragment.mounts]
    notebook["volumeMounts"] = kept + new
    mounted = {m["name"] for c in _containers(spec) for m in c.get("volumeMounts") or ()}
    # A claim that nothing mounts any more would still hold the pod back if it does not exist.
    gone = {m["name"] for m in mounts} - mounted | {v["name"] for v in ours}
    _set(spec, "volumes", [v for v in existing if v["name"] not in gone] + ours)


def _claim(volume: Object) -> tuple[str, bool] | None:
    source = volume.get("persistentVolumeClaim")
    return (source["claimName"], bool(source.get("readOnly"))) if source else None


def _path(mount: Object) -> str:
    return str(mount["mountPath"]).rstrip("/") or "/"


def _apply_placement(spec: dict[str, Any], fragment: PodFragment) -> None:
    _set(spec, "nodeSelector", (spec.get("nodeSelector") or {}) | dict(fragment.node_selector))
    _set(spec, "tolerations", merge_tolerations(spec.get("tolerations") or (), fragment.tolerations))
    secrets = [secret["name"] for secret in spec.get("imagePullSecrets") or ()]
    names = dict.fromkeys([*secrets, *fragment.pull_secrets])
    _set(spec, "imagePullSecrets", [{"name": name} for name in names])
    named = {
        "runtimeClassName": fragment.runtime_class,
        "priorityClassName": fragment.priority_class,
        "schedulerName": fragment.scheduler,
        "serviceAccountName": fragment.service_account,
    }
    spec.update({field: name for field, name in named.items() if name is not None})


def _set(target: dict[str, Any], field: str, value: Any) -> None:
    """Write a field, or leave it out when it would be empty."""
    if value:
        target[field] = value
    else:
        target.pop(field, None)


def _apply_security(spec: dict[str, Any], notebook: dict[str, Any], fragment: PodFragment) -> None:
    spec["automountServiceAccountToken"] = fragment.service_account_token
    for target, ours in ((spec, fragment.pod_security), (notebook, fragment.container_security)):
        context = (target.get("securityContext") or {}) | thaw(ours)
        if context.get("runAsNonRoot") and context.get("runAsUser") == 0:
            del context["runAsUser"]
        if context.get("allowPrivilegeEscalation") is False:
            context.pop("privileged", None)
        target["securityContext"] = context


def _apply_working_dir(spec: dict[str, Any], notebook: dict[str, Any], fragment: PodFragment) -> None:
    others = [c for c in spec.get("initContainers") or () if c["name"] != _FOLDER]
    if fragment.working_dir is None:
        _set(spec, "initContainers", others)
        return
    notebook["workingDir"] = fragment.working_dir
    if any(_path(mount) == fragment.working_dir for mount in notebook["volumeMounts"]):
        _set(spec, "initContainers", others)
        return
    spec["initContainers"] = [*others, _folder_maker(notebook, fragment.working_dir)]


def _folder_maker(notebook: Object, folder: str) -> dict[str, Any]:
    """Build the init container that makes `folder`; it asks for no more than the notebook and no card."""
    maker: dict[str, Any] = {"name": _FOLDER, "command": ["mkdir", "-p", folder]}
    maker["env"] = [{"name": VISIBLE_DEVICES, "value": "void"}]
    for field in ("image", "imagePullPolicy", "securityContext"):
        if field in notebook:
            maker[field] = deepcopy(notebook[field])
    maker["resources"] = {
        field: {name: amount for name, amount in amounts.items() if name in {"cpu", "memory"}}
        for field, amounts in notebook["resources"].items()
        if field in {"requests", "limits"}
    }
    mounts = [m for m in notebook["volumeMounts"] if folder.startswith(f"{_path(m)}/")]
    _set(maker, "volumeMounts", deepcopy(mounts))
    return maker
