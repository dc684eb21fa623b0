"""The container's process table, by way of psutil.

Shell: reads /proc.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil

from .processes import Stat


def read_table() -> tuple[Stat, ...]:
    """Every process that can be seen; those that end meanwhile are left out."""
    return tuple(_stats())


def _stats() -> Iterator[Stat]:
    for process in psutil.process_iter():
        try:
            yield _stat(process)
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue


def _stat(process: psutil.Process) -> Stat:
    with process.oneshot():
        times = process.cpu_times()
        return Stat(
            pid=process.pid,
            parent=process.ppid(),
            group=os.getpgid(process.pid),
            session=os.getsid(process.pid),
            command=process.name(),
            started=process.create_time(),
            cpu_seconds=times.user + times.system,
            children_seconds=times.children_user + times.children_system,
            io_bytes=_io_bytes(process),
        )


def _io_bytes(process: psutil.Process) -> int | None:
    try:
        counters = process.io_counters()
    except psutil.AccessDenied:
        return None  # of another user, or a kernel that does not count
    return int(counters.read_chars + counters.write_chars)
