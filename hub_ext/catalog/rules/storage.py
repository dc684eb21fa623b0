"""Volumes: each at a place of its own, and a home that belongs to one user.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..codes import Code
from ..model import Home, Mount, MpsGpu, Storage
from ..problems import Loc, Problem
from .context import Context

_SYSTEM: Final = {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"}
_NO_VOLUMES: Final = ("/dev/", "/proc/", "/sys/")
HUB_HOME: Final = "/home/jovyan"
"""Where Zero to JupyterHub mounts the volume of a user."""
SUB_PATH_FIELDS: Final = ("user", "team")
URI_FIELDS: Final = ("user", "team", "profile", "server")
_FIELD: Final = re.compile(r"\{([^{}]*)\}|[{}]")


def check_storage(context: Context) -> Iterator[Problem]:
    """What is written about storage, in the defaults, in profiles and in options."""
    for loc, storage in _written(context):
        if storage.home is not None:
            yield from _check_home((*loc, "home"), storage.home)
        for key, mount in (("datasets", storage.datasets), ("models", storage.models)):
            if mount is not None:
                yield from _check_mount((*loc, key), mount)
        for name, mount in storage.mounts.items():
            yield from _check_mount((*loc, "mounts", name), mount)
        if storage.checkpoints is not None:
            yield from _check_fields((*loc, "checkpoints", "uri"), storage.checkpoints.uri, URI_FIELDS)
        for volume, path in places(storage).items():
            yield from _check_place((*loc, *volume), path)


def _written(context: Context) -> Iterator[tuple[Loc, Storage]]:
    yield ("defaults", "storage"), context.written.defaults.storage
    for loc, profile in context.written_profiles():
        yield (*loc, "storage"), profile.storage
    for loc, choice in context.written_choices():
        for key, option in choice.options.items():
            yield (*loc, "options", key, "storage"), option.storage


def places(storage: Storage) -> dict[Loc, str]:
    """Give where each volume is mounted, by its place in the catalog."""
    single = {
        ("home",): storage.home,
        ("scratch",): storage.scratch,
        ("datasets",): storage.datasets,
        ("models",): storage.models,
    }
    found: dict[Loc, str] = {key: volume.mount_path for key, volume in single.items() if volume is not None}
    found.update({("mounts", name): mount.mount_path for name, mount in storage.mounts.items()})
    return found


def _check_place(loc: Loc, path: str) -> Iterator[Problem]:
    if path in _SYSTEM or path.startswith(_NO_VOLUMES):
        yield Problem(
            code=Code.MOUNT_RESERVED,
            message=f"{path} is a part of the system",
            loc=(*loc, "mountPath"),
            help="Choose a place such as /data. /dev/shm is sharedMemory.",
        )


def _check_home(loc: Loc, home: Home) -> Iterator[Problem]:
    if home.access_mode == "ReadOnlyMany":
        yield Problem(
            code=Code.HOME_READ_ONLY,
            message="nobody could save a notebook",
            loc=(*loc, "accessMode"),
            help="Use ReadWriteOnce, or ReadWriteMany for several workspaces at once.",
        )
    if home.claim is None:
        missing = "claim" if home.sub_path is not None else ""
        if home.class_ is not None and home.size is None:
            missing = "size"
        if missing:
            yield Problem(
                code=Code.HOME_INCOMPLETE,
                message=f"{missing} is missing",
                loc=loc,
                help="Write a size for a volume per user, or claim and subPath for one volume for all.",
            )
        return
    if home.size is not None or home.class_ is not None:
        yield Problem(
            code=Code.HOME_INCOMPLETE,
            message="claim names an existing volume, so class and size mean nothing",
            loc=(*loc, "claim"),
            help="Keep claim, or class and size.",
        )
    if "{user}" not in (home.sub_path or ""):
        yield Problem(
            code=Code.HOME_SHARED,
            message="all users would have one home",
            loc=(*loc, "subPath") if home.sub_path else loc,
            help='Write subPath: "home/{user}".',
        )
    yield from _check_sub_path((*loc, "subPath"), home.sub_path)


def _check_mount(loc: Loc, mount: Mount) -> Iterator[Problem]:
    if (mount.claim is None) == (mount.nfs is None):
        yield Problem(
            code=Code.MOUNT_SOURCE,
            message="a mount needs one of claim and nfs" + (", not both" if mount.claim else ""),
            loc=loc,
            help="Name the PersistentVolumeClaim, or server and path of an NFS share.",
        )
    yield from _check_sub_path((*loc, "subPath"), mount.sub_path)


def _check_sub_path(loc: Loc, path: str | None) -> Iterator[Problem]:
    if path is None:
        return
    if path.startswith("/") or ".." in path.split("/"):
        yield Problem(
            code=Code.BAD_PATH, message=f"{path!r} leaves the volume", loc=loc, help="Write a relative path."
        )
    yield from _check_fields(loc, path, SUB_PATH_FIELDS)


def _check_fields(loc: Loc, text: str, allowed: tuple[str, ...]) -> Iterator[Problem]:
    for match in _FIELD.finditer(text):
        if match[1] not in allowed:
            yield Problem(
                code=Code.UNKNOWN_PLACEHOLDER,
                message=f"{match[0]!r} is not filled in here",
                loc=loc,
                help=f"Known: {', '.join(f'{{{name}}}' for name in allowed)}.",
            )


def check_overlap(context: Context) -> Iterator[Problem]:
    """Two volumes at one place, in any workspace that can be reached."""
    for loc, profile in context.profiles():
        said: set[str] = set()
        for variant in context.variants(profile):
            by_path: dict[str, Loc] = {}
            for key, path in places(variant.storage).items():
                other = by_path.setdefault(path, key)
                if other != key and path not in said:
                    said.add(path)
                    names = " and ".join(".".join(map(str, k)) for k in (other, key))
                    yield Problem(
                        code=Code.MOUNT_OVERLAP,
                        message=f"{profile.label}: {names} are both mounted at {path}",
                        loc=(*loc, "storage", *key),
                        help="Give one of them another mountPath.",
                    )


def check_hub_home(context: Context) -> Iterator[Problem]:
    """Without a home of the catalog the hub's own one is mounted, unless something else stands there."""
    for loc, profile in context.profiles():
        said: set[Loc] = set()
        for variant in context.variants(profile):
            if variant.storage.home is not None:
                continue
            for key, path in places(variant.storage).items():
                if path == HUB_HOME and key not in said:
                    said.add(key)
                    yield Problem(
                        code=Code.HOME_HIDDEN,
                        message=f"{profile.label}: {'.'.join(map(str, key))} takes the place of the hub's "
                        f"own home at {path}",
                        loc=(*loc, "storage", *key),
                        help="Write it as storage.home, or mount it elsewhere.",
                    )


def check_shared_memory(context: Context) -> Iterator[Problem]:
    """The device plugin mounts a `/dev/shm` into pods with shares by MPS, through which its daemon works."""
    for loc, profile in context.profiles():
        for variant in context.variants(profile):
            request = variant.resources.gpu
            pool = context.catalog.pools.get(request.pool) if request else None
            if variant.storage.shared_memory is not None and pool and isinstance(pool.gpu, MpsGpu):
                yield Problem(
                    code=Code.SHARED_MEMORY_MPS,
                    message=f"{profile.label}: under MPS the device plugin mounts /dev/shm, so "
                    "sharedMemory has no effect",
                    loc=(*loc, "storage", "sharedMemory"),
                    help="Write sharedMemory: null here; the size is set where the MPS control daemon runs.",
                )
                break


def check_work_dir(context: Context) -> Iterator[Problem]:
    """Code belongs where it survives a stop."""
    for loc, profile in context.profiles():
        storage = profile.storage
        if storage.work_dir is None:
            continue
        kept = [storage.home.mount_path] if storage.home else []
        mounts = (storage.datasets, storage.models, *storage.mounts.values())
        kept += [mount.mount_path for mount in mounts if mount is not None and not mount.read_only]
        if not any(storage.work_dir == path or storage.work_dir.startswith(f"{path}/") for path in kept):
            yield Problem(
                code=Code.WORK_DIR_LOST,
                message=f"{profile.label}: {storage.work_dir} is lost when the workspace stops",
                loc=(*loc, "storage", "workDir"),
                help=f"Put it below {' or '.join(kept)}." if kept else "Add a home.",
            )
