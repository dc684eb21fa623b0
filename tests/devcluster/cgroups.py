"""The cgroups that kubelets put pods into, on hosts of version 1 and 2.

Each node's root is `/<cluster>/<node>`, made beforehand in every hierarchy: the kubelet wants to find it.

Shell: writes to the cgroup file systems.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tests.devcluster.errors import HostError
from tests.devcluster.waiting import until

MOUNT = Path("/sys/fs/cgroup")
WANTED = ("cpu", "cpuset", "memory", "pids")
"""Controllers without which a kubelet does not start."""
USED = (*WANTED, "io", "hugetlb")
INHERITED = ("cpuset.cpus", "cpuset.mems")
"""Version 1 starts a cpuset empty, and nothing may run in an empty one."""


def is_unified(mount: Path = MOUNT) -> bool:
    """Whether the host has cgroup version 2 only."""
    return (mount / "cgroup.controllers").exists()


def hierarchies(mount: Path = MOUNT) -> list[Path]:
    """Where each hierarchy is mounted; one for version 2."""
    if is_unified(mount):
        return [mount]
    return sorted(p for p in mount.iterdir() if (p / "cgroup.procs").exists() and not p.is_symlink())


def create(group: str, mount: Path = MOUNT) -> None:
    """Make `<cluster>/<node>` in every hierarchy; raises `HostError`."""
    if is_unified(mount):
        _create_unified(mount, group)
        return
    missing = [name for name in WANTED if not (mount / name).exists()]
    if missing:
        raise HostError(
            f"cgroup controllers are not mounted: {', '.join(missing)}", f"mount them below {mount}"
        )
    for hierarchy in hierarchies(mount):
        folder = hierarchy
        for part in Path(group).parts:
            folder = folder / part
            folder.mkdir(exist_ok=True)
            for name in INHERITED:
                own = folder / name
                if own.exists() and not own.read_text().strip():
                    own.write_text((folder.parent / name).read_text())


def _create_unified(mount: Path, group: str) -> None:
    offered = (mount / "cgroup.controllers").read_text().split()
    if missing := [name for name in WANTED if name not in offered]:
        raise HostError(
            f"cgroup controllers are not available: {', '.join(missing)}",
            "in a container, start it privileged and with the host's cgroup namespace",
        )
    folder = mount
    for part in Path(group).parts:
        _delegate(folder, [name for name in USED if name in offered])
        folder = folder / part
        folder.mkdir(exist_ok=True)
    _delegate(folder, [name for name in USED if name in offered])


def _delegate(folder: Path, controllers: list[str]) -> None:
    """Offer controllers to the children of a group."""
    file = folder / "cgroup.subtree_control"
    missing = set(controllers) - set(file.read_text().split())
    if not missing:
        return
    try:
        file.write_text(" ".join(f"+{name}" for name in sorted(missing)))
    except OSError as error:
        remedy = f"the kernel says: {error.strerror}"
        if error.errno == errno.EBUSY:
            remedy = (
                f"because processes are in it; move them first: mkdir {folder}/init; "
                f"for p in $(cat {folder}/cgroup.procs); do echo $p > {folder}/init/cgroup.procs; done"
            )
        raise HostError(f"{folder} cannot hand {', '.join(sorted(missing))} on", remedy) from error


def remove(cluster: str, mount: Path = MOUNT) -> None:
    """Remove a cluster's groups, whose processes must be gone; raises `NotReadyError` if one is busy."""
    for hierarchy in hierarchies(mount) if mount.exists() else []:
        for folder, _, _ in os.walk(hierarchy / cluster, topdown=False):
            _remove_empty(Path(folder))


def _remove_empty(folder: Path) -> None:
    def busy() -> str | None:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return f"processes {(folder / 'cgroup.procs').read_text().split()} are in it"
        return None

    until(busy, what=f"the cgroup {folder} to be empty")
