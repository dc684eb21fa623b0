"""Volumes and mounts of a workspace, and the claim of a user's home.

Pure: no clock, no network.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..catalog.compose import Workspace
from ..catalog.model import Home, Mount, Scratch, Storage
from ..names import label_value, object_name
from ..units import format_bytes

Object = Mapping[str, Any]
Part = tuple[Object, Object]
"""A volume, and where the notebook mounts it."""

ABSENT: Final = "_none"
"""Stands for no team and for the default server. No name can be equal to it: none starts with `_`."""

_FIELD = re.compile(r"\{(user|team|profile|server)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFacts:
    """Who a workspace is for; every text may be anything at all."""

    name: str
    """Exactly as the hub spells it."""
    team: str | None = None
    """Key in `catalog.teams` of the team that pays, None for none."""
    server_name: str = ""
    """Empty for the default server."""
    home_claim: str | None = None
    """PersistentVolumeClaim of the user's home; None derives a name from the user's."""


def home_claim_name(user: UserFacts) -> str:
    """Name the claim that holds a user's home."""
    return user.home_claim or object_name("home", user.name)


def fill_in(template: str, workspace: Workspace, user: UserFacts) -> str:
    """Replace `{user}`, `{team}`, `{profile}` and `{server}` by escaped names; other braces stay.

    An escaped name has letters, digits, dots, dashes and underscores only, so it is one part of a path
    or address and never `..`. Different users never get the same one.
    """
    values = {
        "user": label_value(user.name),
        "team": user.team or ABSENT,
        "profile": workspace.profile.name,
        "server": label_value(user.server_name) or ABSENT,
    }
    return _FIELD.sub(lambda match: values[match[1]], template)


def build_home_claim(
    workspace: Workspace, user: UserFacts, *, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> dict[str, Any] | None:
    """Build the PersistentVolumeClaim of a user's home; None if the profile brings none of its own."""
    home = workspace.storage.home
    if home is None or home.claim is not None or home.size is None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": home_claim_name(user),
            "labels": dict(labels),
            "annotations": dict(annotations),
        },
        "spec": _claim_spec(access_mode=home.access_mode, class_name=home.class_, size=home.size),
    }


def volume_parts(workspace: Workspace) -> tuple[Part, ...]:
    """Build volumes and mounts beside the home with the names of user and team left as fields."""
    return tuple(_shared_parts(workspace.storage, workspace, None, {}))


def has_names(part: Part) -> bool:
    """Say whether a mount depends on who the user is."""
    return _FIELD.search(part[1].get("subPath", "")) is not None


def _claim_spec(*, access_mode: str, class_name: str | None, size: int) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": [access_mode],
        "resources": {"requests": {"storage": format_bytes(size)}},
    }
    if class_name is not None:
        spec["storageClassName"] = class_name
    return spec


def build_volumes(
    workspace: Workspace, user: UserFacts, *, labels: Mapping[str, str]
) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """Build the volumes of a workspace and where each is mounted, in a fixed order.

    `labels` go on the claims that live and die with the pod.
    """
    parts = tuple(_parts(workspace, user, labels))
    return tuple(volume for volume, _ in parts), tuple(mount for _, mount in parts)


def _parts(workspace: Workspace, user: UserFacts, labels: Mapping[str, str]) -> Iterator[Part]:
    home = workspace.storage.home
    if home is not None:
        yield _home(home, workspace, user)
    yield from _shared_parts(workspace.storage, workspace, user, labels)


def _shared_parts(
    storage: Storage, workspace: Workspace, user: UserFacts | None, labels: Mapping[str, str]
) -> Iterator[Part]:
    if storage.scratch is not None:
        yield _scratch(storage.scratch, labels)
    named = {"workspace-datasets": storage.datasets, "workspace-models": storage.models}
    named |= {f"mount-{name}": mount for name, mount in storage.mounts.items()}
    for name, mount in named.items():
        if mount is not None:
            yield _mount(object_name(name), mount, workspace, user)
    if workspace.shared_memory is not None:
        memory = {"medium": "Memory", "sizeLimit": format_bytes(workspace.shared_memory)}
        yield _part("workspace-shared-memory", {"emptyDir": memory}, "/dev/shm")  # noqa: S108


def _home(home: Home, workspace: Workspace, user: UserFacts) -> Part:
    claim = home.claim or home_claim_name(user)
    sub_path = fill_in(home.sub_path, workspace, user) if home.sub_path else None
    source = {"persistentVolumeClaim": {"claimName": claim}}
    return _part("workspace-home", source, home.mount_path, sub_path=sub_path)


def _scratch(scratch: Scratch, labels: Mapping[str, str]) -> Part:
    if scratch.class_ is None:
        source: Object = {"emptyDir": {"sizeLimit": format_bytes(scratch.size_limit)}}
    else:
        spec = _claim_spec(access_mode="ReadWriteOnce", class_name=scratch.class_, size=scratch.size_limit)
        template = ({"metadata": {"labels": dict(labels)}} if labels else {}) | {"spec": spec}
        source = {"ephemeral": {"volumeClaimTemplate": template}}
    return _part("workspace-scratch", source, scratch.mount_path)


def _mount(name: str, mount: Mount, workspace: Workspace, user: UserFacts | None) -> Part:
    source: dict[str, Any]
    if mount.nfs is not None:
        source = {"nfs": {"server": mount.nfs.server, "path": mount.nfs.path}}
    else:
        source = {"persistentVolumeClaim": {"claimName": mount.claim}}
    if mount.read_only:
        next(iter(source.values()))["readOnly"] = True
    sub_path = fill_in(mount.sub_path, workspace, user) if mount.sub_path and user else mount.sub_path
    return _part(name, source, mount.mount_path, sub_path=sub_path, read_only=mount.read_only)


def _part(
    name: str, source: Object, path: str, *, sub_path: str | None = None, read_only: bool = False
) -> Part:
    mount: dict[str, Any] = {"name": name, "mountPath": path}
    if sub_path:
        mount["subPath"] = sub_path
    if read_only:
        mount["readOnly"] = True
    return {"name": name, **source}, mount
