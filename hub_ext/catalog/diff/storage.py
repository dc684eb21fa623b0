"""Differences in what a workspace can read and write, and where.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...units import gib
from ..model import Home, Mount, Scratch, Storage
from .changes import ChangeCode, Impact
from .resources import Difference


def compare_storage(before: Storage, after: Storage) -> Iterator[Difference]:
    """Compare volumes, the home first."""
    yield from _home(before.home, after.home)
    yield from _scratch(before.scratch, after.scratch)
    old, new = _mounts(before), _mounts(after)
    for name in dict.fromkeys([*old, *new]):
        yield from _mount(name, old.get(name), new.get(name))
    yield from _checkpoints(before, after)
    if before.shared_memory != after.shared_memory:
        had, has = (
            gib(size) if size else "the default" for size in (before.shared_memory, after.shared_memory)
        )
        smaller = (after.shared_memory or 0) < (before.shared_memory or 0)
        impact = Impact.NOTICEABLE if smaller else Impact.MINOR
        yield impact, ChangeCode.SHARED_MEMORY, f"shared memory: {had} → {has}"
    if before.work_dir != after.work_dir:
        message = (
            f"JupyterLab opens in {after.work_dir or 'the home'} instead of {before.work_dir or 'the home'}"
        )
        yield Impact.NOTICEABLE, ChangeCode.WORK_DIR, message


def _home(before: Home | None, after: Home | None) -> Iterator[Difference]:
    if before is None or after is None:
        if before is not None:
            yield Impact.BREAKING, ChangeCode.HOME, "the home is gone: nothing in it can be reached"
        elif after is not None:
            yield Impact.NOTICEABLE, ChangeCode.HOME, f"a home at {after.mount_path} is added"
        return
    if before.mount_path != after.mount_path:
        message = f"the home moves from {before.mount_path} to {after.mount_path}: paths in notebooks break"
        yield Impact.BREAKING, ChangeCode.HOME_PATH, message
    if (before.claim, before.sub_path) != (after.claim, after.sub_path):
        message = f"the home is another volume ({_volume(before)} → {_volume(after)}): files are not there"
        yield Impact.BREAKING, ChangeCode.HOME, message
    elif before.class_ != after.class_:
        old, new = before.class_ or "the default", after.class_ or "the default"
        message = f"class of new homes: {old} → {new}; existing ones stay as they are"
        yield Impact.MINOR, ChangeCode.HOME, message
    if before.size and after.size and before.size != after.size:
        shrunk = after.size < before.size
        note = ": existing volumes keep their size" if shrunk else ""
        yield (
            Impact.NOTICEABLE if shrunk else Impact.MINOR,
            ChangeCode.HOME_SIZE,
            f"home size: {gib(before.size)} → {gib(after.size)}{note}",
        )
    if before.access_mode != after.access_mode:
        message = f"home access: {before.access_mode} → {after.access_mode}; existing volumes keep theirs"
        yield Impact.NOTICEABLE, ChangeCode.HOME, message


def _volume(home: Home) -> str:
    return f"{home.claim}/{home.sub_path or ''}" if home.claim else "one per user"


def _scratch(before: Scratch | None, after: Scratch | None) -> Iterator[Difference]:
    if before is None and after is not None:
        message = f"scratch space at {after.mount_path} is added"
        yield Impact.MINOR, ChangeCode.SCRATCH, message
    elif before is not None and after is None:
        yield Impact.NOTICEABLE, ChangeCode.SCRATCH, f"the scratch space at {before.mount_path} is gone"
    elif before is not None and after is not None:
        if before.mount_path != after.mount_path:
            message = f"the scratch space moves from {before.mount_path} to {after.mount_path}"
            yield Impact.NOTICEABLE, ChangeCode.SCRATCH, message
        if before.size_limit != after.size_limit:
            impact = Impact.NOTICEABLE if after.size_limit < before.size_limit else Impact.MINOR
            message = f"scratch space: {gib(before.size_limit)} → {gib(after.size_limit)}"
            yield impact, ChangeCode.SCRATCH, message


def _mounts(storage: Storage) -> dict[str, Mount]:
    named = {"datasets": storage.datasets, "models": storage.models, **storage.mounts}
    return {name: mount for name, mount in named.items() if mount is not None}


def _mount(name: str, before: Mount | None, after: Mount | None) -> Iterator[Difference]:
    if before is None or after is None:
        if before is not None:
            yield Impact.BREAKING, ChangeCode.MOUNT, f"{name} at {before.mount_path} is gone"
        elif after is not None:
            yield Impact.MINOR, ChangeCode.MOUNT, f"{name} at {after.mount_path} is added"
        return
    if before.mount_path != after.mount_path:
        message = f"{name} moves from {before.mount_path} to {after.mount_path}"
        yield Impact.BREAKING, ChangeCode.MOUNT_PATH, message
    if (before.claim, before.nfs, before.sub_path) != (after.claim, after.nfs, after.sub_path):
        yield Impact.NOTICEABLE, ChangeCode.MOUNT, f"{name} comes from another volume"
    if before.read_only != after.read_only:
        impact = Impact.BREAKING if after.read_only else Impact.MINOR
        yield (
            impact,
            ChangeCode.MOUNT_READ_ONLY,
            f"{name} is {'read-only' if after.read_only else 'writable'} now",
        )


def _checkpoints(before: Storage, after: Storage) -> Iterator[Difference]:
    old, new = before.checkpoints, after.checkpoints
    if old is None or new is None:
        if old is not None:
            yield Impact.BREAKING, ChangeCode.CHECKPOINTS, f"{old.env} is no longer set"
        elif new is not None:
            yield Impact.MINOR, ChangeCode.CHECKPOINTS, f"{new.env} names a place for checkpoints"
        return
    if old.env != new.env:
        yield Impact.BREAKING, ChangeCode.CHECKPOINTS, f"the variable {old.env} is now called {new.env}"
    if old.uri != new.uri:
        message = f"checkpoints go to {new.uri} instead of {old.uri}; the old ones are not moved"
        yield Impact.NOTICEABLE, ChangeCode.CHECKPOINTS, message
