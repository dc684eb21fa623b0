"""What one set of cleaned settings asks for.

Pure: no clock, no network.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..catalog.problems import Loc
from .codes import Code, Findings
from .texts import has_fields

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount path


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a pod may go; what becomes a pool of the catalog, together with the kind of GPU."""

    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[tuple[tuple[str, Any], ...], ...] = ()
    runtime_class: str | None = None
    priority_class: str | None = None
    scheduler: str | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether the hub's own placement applies."""
        return self == Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a server of these settings gets."""

    image: str | None
    pull_secrets: tuple[str, ...]
    command: tuple[str, ...]
    default_url: str | None
    cpu: tuple[int | None, int | None]
    """Request and limit in millicores."""
    memory: tuple[int | None, int | None]
    """Request and limit in bytes."""
    accelerators: tuple[tuple[str, int], ...]
    """Every kind of GPU that is asked for; the pod gets the last one."""
    unequal: tuple[tuple[str, int, int | None], ...]
    """Kinds of GPU whose guarantee is not the limit: name, guarantee, limit. No such pod is ever made."""
    place: Place
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    security: Mapping[str, Any]
    storage: Mapping[str, Any] = field(default_factory=dict)
    start_timeout: int | None = None

    @property
    def gpu(self) -> tuple[str, int] | None:
        return self.accelerators[-1] if self.accelerators else None


def read_facts(settings: Mapping[str, Any], findings: Findings) -> Facts:
    """Read cleaned and merged settings; only how volumes fit together is judged here."""
    return Facts(
        image=settings.get("image"),
        pull_secrets=tuple(settings.get("image_pull_secrets") or ()),
        command=tuple(settings.get("cmd") or ()),
        default_url=settings.get("default_url"),
        cpu=_amount(settings, "cpu"),
        memory=_amount(settings, "mem"),
        accelerators=_accelerators(settings),
        unequal=_unequal(settings),
        place=_place(settings),
        environment=_texts(settings, "environment"),
        labels=_texts(settings, "extra_labels"),
        annotations=_texts(settings, "extra_annotations"),
        security=_security(settings),
        storage=_storage(settings, findings),
        start_timeout=settings.get("start_timeout"),
    )


def _amount(settings: Mapping[str, Any], name: str) -> tuple[int | None, int | None]:
    """Give request and limit; Kubernetes takes the limit for a request that is not there."""
    guarantee, limit = settings.get(f"{name}_guarantee"), settings.get(f"{name}_limit")
    return guarantee or limit, limit


def _accelerators(settings: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    limits = settings.get("extra_resource_limits") or {}
    guarantees = settings.get("extra_resource_guarantees") or {}
    counts = {**guarantees, **limits}
    return tuple((name, count) for name, count in counts.items() if count)


def _unequal(settings: Mapping[str, Any]) -> tuple[tuple[str, int, int | None], ...]:
    """Find what the API server refuses: extended resources need a limit, and a request must equal it."""
    limits = settings.get("extra_resource_limits") or {}
    guarantees = settings.get("extra_resource_guarantees") or {}
    return tuple(
        (name, count, limits.get(name))
        for name, count in guarantees.items()
        if count is not None and count != limits.get(name)
    )


def _place(settings: Mapping[str, Any]) -> Place:
    return Place(
        node_selector=tuple(sorted(_texts(settings, "node_selector").items())),
        tolerations=tuple(tuple(item.items()) for item in settings.get("tolerations") or ()),
        runtime_class=settings.get("runtime_class"),
        priority_class=settings.get("priority_class_name"),
        scheduler=settings.get("scheduler_name"),
    )


def _texts(settings: Mapping[str, Any], name: str) -> dict[str, str]:
    return {key: value for key, value in (settings.get(name) or {}).items() if value is not None}


_SECURITY: Final = {
    "uid": "runAsUser",
    "gid": "runAsGroup",
    "fs_gid": "fsGroup",
    "service_account": "serviceAccount",
    "automount_service_account_token": "serviceAccountToken",
    "allow_privilege_escalation": "allowPrivilegeEscalation",
}


def _security(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: settings[name] for name, key in _SECURITY.items() if settings.get(name) is not None}


def _storage(settings: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    """Pair volumes with their mounts and find the catalog's words for them."""
    volumes = {volume.get("name"): volume for volume in settings.get("volumes") or ()}
    storage: dict[str, Any] = {}
    mounted = set()
    for mount in settings.get("volume_mounts") or ():
        name = mount.get("name")
        mounted.add(name)
        loc: Loc = mount["#"]
        if name not in volumes:
            findings.add(Code.NOT_CARRIED, loc, f"there is no volume {name!r} beside it to mount")
            continue
        problem = _carry(volumes[name], mount, storage)
        if problem:
            findings.add(Code.NOT_CARRIED, loc, problem)
    for name in volumes.keys() - mounted:
        findings.add(Code.NOT_CARRIED, volumes[name]["#"], f"nothing mounts the volume {name!r}")
    return storage


def _carry(volume: Mapping[str, Any], mount: Mapping[str, Any], storage: dict[str, Any]) -> str:
    """Add a mounted volume to `storage`; the result says why it could not be, or is empty."""
    path = str(mount.get("mountPath", "")).rstrip("/")
    extra = set(mount) - {"#", "name", "mountPath", "subPath", "readOnly"}
    if extra or _has_fields({**volume, "#": ""}) or _has_fields(mount.get("subPath")):
        return "the mount has options, or names that KubeSpawner fills in, which the catalog has not"
    match volume:
        case {"emptyDir": {"medium": "Memory", "sizeLimit": size}} if path == SHARED_MEMORY:
            storage["sharedMemory"] = size
        case {"emptyDir": {"sizeLimit": size}} if "scratch" not in storage and path != SHARED_MEMORY:
            storage["scratch"] = {"sizeLimit": size, "mountPath": path}
        case {"persistentVolumeClaim": {"claimName": claim}}:
            read_only = mount.get("readOnly") or volume["persistentVolumeClaim"].get("readOnly") or False
            source = {"claim": claim, "readOnly": bool(read_only), "mountPath": path}
            storage.setdefault("mounts", {})[volume["name"]] = source | _sub_path(mount)
        case {"nfs": {"server": server, "path": export}}:
            source = {"nfs": {"server": server, "path": export}, "mountPath": path}
            source["readOnly"] = bool(mount.get("readOnly") or volume["nfs"].get("readOnly"))
            storage.setdefault("mounts", {})[volume["name"]] = source | _sub_path(mount)
        case _:
            kinds = ", ".join(key for key in volume if key not in {"name", "#"})
            return f"the catalog has no words for this volume ({kinds or 'empty'})"
    return ""


def _has_fields(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_fields(item) for item in value.values())
    return isinstance(value, str) and has_fields(value)


def _sub_path(mount: Mapping[str, Any]) -> dict[str, str]:
    return {"subPath": mount["subPath"]} if mount.get("subPath") else {}
