"""Where the development cluster keeps what is built once: outside the checkout, shared by all of them.

Layout below `cache_root()`: `<kind>/<key>/<name>`, with kinds such as `bin`, `images` and `manifests`, and
the key a hash of everything that decides the content. `build/` holds what may be dropped once all is built.

Shell: files and locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT_VARIABLE = "GPU_WORKSPACES_CACHE"
KEY_LENGTH = 16
"""Hex digits of a key: 64 bits, ample for some hundred entries and short enough to read in a log."""


def cache_root() -> Path:
    """The cache folder, absolute; it need not exist yet."""
    chosen = os.environ.get(ROOT_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "gpu-workspaces"


def scratch() -> Path:
    """What may be dropped once all is built: sources, compiled packages, and notes on what was downloaded."""
    return cache_root() / "build"


def compiled() -> Path:
    """Go's cache of compiled packages, the largest part of what may be dropped."""
    return scratch() / "go"


def key_of(*parts: bytes | str) -> str:
    """Hash parts so that moving a byte from one part to the next gives another key."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:KEY_LENGTH]


def entry(kind: str, key: str, name: str) -> Path:
    """Path of one thing in the cache, whether it is there or not."""
    return cache_root() / kind / key / name


def mark_used(path: Path) -> None:
    """Note on an entry's key folder that it was wanted now; `drop_unused` goes by it."""
    with contextlib.suppress(PermissionError):  # a cache that another user filled may be read-only
        os.utime(path.parent)


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield a path beside `target` that takes its place when the block ends well; else it is removed.

    The path may become a file or a folder. Hold `locked(...)` for the target: what lies at the staging path
    is taken to be the left-over of a killed process.
    """
    part = target.with_name(f".{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    remove(part)
    try:
        yield part
        remove(target)
        part.rename(target)
    finally:
        remove(part)


def remove(path: Path) -> None:
    """Remove a file or folder, or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(name: str, *, shared: bool = False, on_wait: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold a lock between processes; waits for it, calling `on_wait` once if it has to.

    Yields the lock's file descriptor. A child process that inherits it keeps the lock for as long as it
    lives, so that a killed parent does not let a second builder in while the first one's compiler still
    writes.
    """
    path = cache_root() / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with path.open("a") as file:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait:
                on_wait()
            fcntl.flock(file, how)
        yield file.fileno()


@contextlib.contextmanager
def lock_if_free(name: str) -> Iterator[bool]:
    """Hold a lock exclusively if nobody has it, shared or not; yields whether it is held. Never waits."""
    path = cache_root() / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def size_bytes(path: Path) -> int:
    """What a file or folder occupies on disk; a file with several names counts once."""
    if not path.is_dir():
        return path.stat().st_blocks * 512 if path.exists() else 0
    blocks: dict[tuple[int, int], int] = {}
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                status = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - a hundred thousand files
            except FileNotFoundError:  # another process is at work in the cache
                continue
            blocks[status.st_dev, status.st_ino] = status.st_blocks
    return sum(blocks.values()) * 512


def drop_unused(kind: str, *, days: float, keep: int) -> list[Path]:
    """Remove the entries of `kind` that were not wanted for so many days, and replaced ones.

    Of each name, the `keep` last wanted are kept: what is made from the checkout gets a new key with each
    change. Returns the key folders removed.
    """
    oldest = time.time() - days * 86400
    wanted = {folder: folder.stat().st_mtime for folder in (cache_root() / kind).glob("*") if folder.is_dir()}
    seen: Counter[str] = Counter()
    removed: list[Path] = []
    for folder in sorted(wanted, key=wanted.__getitem__, reverse=True):
        name = next((path.name for path in folder.iterdir()), "")
        seen[name] += 1
        if wanted[folder] < oldest or seen[name] > keep:
            shutil.rmtree(folder)
            removed.append(folder)
    return removed
