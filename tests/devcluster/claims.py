"""Who has which cluster name and which address range: file locks, which the kernel drops with their holder.

Shell: files and locks.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.devcluster import host
from tests.devcluster.addresses import SLOTS, Addresses, free_slots
from tests.devcluster.errors import HostError, StateError
from tests.devcluster.limits import Limits
from tests.devcluster.record import runs_dir
from tests.devcluster.spec import Size
from tests.devcluster.waiting import POLL_SECONDS

LOCKS = ".locks"
NAME = r"[a-z0-9]([a-z0-9.-]{0,30}[a-z0-9])?"
PROBES = 5
"""A lock may be held for a moment by somebody who looks whether it is held."""


def limits() -> Limits:
    """The machine's limits, shared by all clusters of this cache."""
    return Limits(runs_dir() / LOCKS / "limits.json")


def try_lock(name: str) -> int | None:
    """Lock `name` among all clusters of this cache; returns the file descriptor that holds it, or None.

    A child that inherits the descriptor holds the lock too.
    """
    path = runs_dir() / LOCKS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def claim_name(name: str) -> int:
    """Hold a cluster's name; raises `StateError` if it is no name, is up, or being stopped."""
    if not re.fullmatch(NAME, name):
        raise StateError(f"cluster {name!r}", "has no valid name", "use up to 32 of a-z, 0-9, `-` and `.`")
    for _ in range(PROBES):
        if (descriptor := try_lock(f"name-{name}")) is not None:
            return descriptor
        time.sleep(POLL_SECONDS)
    raise StateError(
        f"cluster {name!r}",
        "is up already",
        f"stop it: python -m tests.devcluster down {name}; or choose another name with --name",
    )


def claim_free_name(wanted: str) -> tuple[str, int]:
    """Hold `wanted`, or `wanted-2` and so on if that is taken."""
    for number in range(1, SLOTS + 1):
        name = wanted if number == 1 else f"{wanted[:28]}-{number}"
        if (descriptor := try_lock(f"name-{name}")) is not None:
            return name, descriptor
    raise StateError(f"cluster {wanted!r}", "is up many times", "stop some: python -m tests.devcluster down")


def claim_slot(size: Size) -> tuple[Addresses, int]:
    """Hold an address range that no other cluster has and that the host has no routes into."""
    taken = host.routed_networks() if size is Size.NODES else []
    for addresses in free_slots(taken):
        if (descriptor := try_lock(f"slot-{addresses.slot}")) is not None:
            return addresses, descriptor
    raise HostError(
        f"no free address range: all of {Addresses(0).network} to {Addresses(SLOTS - 1).network} are taken",
        "stop clusters (python -m tests.devcluster status), or see `ip route` for what else has them",
    )


def state_dirs() -> Iterator[Path]:
    """State folders of all clusters of this cache, up or not."""
    folder = runs_dir()
    return (
        (p for p in sorted(folder.iterdir()) if p.is_dir() and p.name != LOCKS)
        if folder.exists()
        else iter(())
    )


def is_claimed(name: str) -> bool:
    """Whether somebody holds a cluster's name: its supervisor, or what clears up after it."""
    descriptor = try_lock(f"name-{name}")
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
