"""Whose process is which, and what each used: processor time between two looks at the process table.

Processor time of children that ended is counted where the system puts it, with the parent that waited for
them; what such a child had used before the window is taken off again.

Source: proc_pid_stat(5): utime, stime; cutime, cstime.
Pure: no clock, no system calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hub_ext.protocol import Origin

CLOCK_SECONDS = 1.0
"""Start times of processes are this exact, by what separates the kernel's clock from the wall's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    session: int
    command: str
    started: float
    """Seconds since the epoch."""
    cpu_seconds: float
    children_seconds: float = 0
    """Processor time of children that ended and were waited for, and of their children."""
    io_bytes: int | None = None
    """Read and written so far; None where that may not be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The first process of a terminal."""

    name: str
    """Of the terminal."""
    foreground: int | None = None
    """The terminal's foreground process group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """The processes that others are known by."""

    server: int
    kernels: Mapping[int, str] = field(default_factory=dict)
    """Process id of each local kernel → its id."""
    shells: Mapping[int, Shell] = field(default_factory=dict)
    """Process id → terminal."""
    helpers: frozenset[int] = frozenset()
    """What the agent itself started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one process used in a window. Processor time is a share of one processor."""

    stat: Stat
    origin: Origin
    owner: str
    own: float | None
    """None where it was not measured from the window's start."""
    reaped: float = 0
    """Of children that ended in the window."""
    io_bytes: int | None = None
    foreground: bool = False

    @property
    def cpu(self) -> float | None:
        """All that counts as its own."""
        return None if self.own is None else self.own + self.reaped


def measure(
    before: Iterable[Stat], after: Iterable[Stat], *, roots: Roots, begun: float, seconds: float
) -> tuple[Use, ...]:
    """Say what each process of `after` used since `before`.

    Parameters
    ----------
    begun
        When `before` was read, in seconds since the epoch.
    seconds
        From `before` to `after`; 0 when there was no earlier look, and then nothing is measured.
    """
    earlier = {stat.pid: stat for stat in before}
    now = {stat.pid: stat for stat in after}
    ended = _ended(earlier, now)
    found = []
    for stat in now.values():
        origin, owner = origin_of(stat, now, roots)
        own, reaped, io_bytes = None, 0.0, None
        since = _same(earlier.get(stat.pid), stat) or _born(stat, begun)
        if seconds > 0 and since:
            own = max(stat.cpu_seconds - since.cpu_seconds, 0) / seconds
            grown = stat.children_seconds - since.children_seconds
            reaped = max(grown - ended.get(stat.pid, 0), 0) / seconds
            io_bytes = _difference(since.io_bytes, stat.io_bytes)
        use = Use(stat=stat, origin=origin, owner=owner, own=own, reaped=reaped, io_bytes=io_bytes)
        found.append(replace(use, foreground=_in_foreground(stat, owner, roots)))
    return tuple(found)


def origin_of(stat: Stat, table: Mapping[int, Stat], roots: Roots) -> tuple[Origin, str]:
    """Say what a process belongs to, and the kernel's id or terminal's name.

    The nearest ancestor decides. Orphans are known by their session, which kernels and terminals have each
    for themselves. What an application beside JupyterLab started counts as detached: it may be work.
    """
    if stat.pid in roots.helpers or _leads_to(roots.server, table, stat.pid):
        return Origin.SERVER, ""
    for pid in (*_line(stat, table), stat.session):
        if pid in roots.kernels:
            return Origin.KERNEL, roots.kernels[pid]
        if pid in roots.shells:
            return Origin.TERMINAL, roots.shells[pid].name
        if pid in roots.helpers:
            return Origin.SERVER, ""
    return Origin.DETACHED, ""


def tree_cpu(uses: Iterable[Use], root: int, owner: str, *, without_root: bool = False) -> float | None:
    """Processor use of all that belongs to a kernel or terminal; None where its root was not measured."""
    members = [use for use in uses if use.owner == owner]
    found = next((use for use in members if use.stat.pid == root), None)
    if found is None or found.own is None:
        return None
    total = sum(use.cpu for use in members if use.cpu is not None)
    return max(total - found.own, 0.0) if without_root else total


def foreground_command(uses: Iterable[Use], shell: Shell) -> str:
    """Name of what runs in the foreground of a terminal, empty while its shell waits for a command."""
    group = [use.stat for use in uses if use.foreground and use.owner == shell.name]
    leader = next((stat for stat in group if stat.pid == shell.foreground), group[0] if group else None)
    return leader.command if leader else ""


def _line(stat: Stat, table: Mapping[int, Stat]) -> Iterator[int]:
    """The process and its ancestors, nearest first."""
    seen: set[int] = set()
    pid = stat.pid
    while pid in table and pid not in seen:
        seen.add(pid)
        yield pid
        pid = table[pid].parent


def _leads_to(server: int, table: Mapping[int, Stat], pid: int) -> bool:
    """Whether a process is the server or above it."""
    return server in table and pid in _line(table[server], table)


def _same(known: Stat | None, stat: Stat) -> Stat | None:
    """The earlier entry, if it is of the same process and not of one that had its number."""
    return known if known and abs(known.started - stat.started) < CLOCK_SECONDS else None


def _born(stat: Stat, begun: float) -> Stat | None:
    """A process at its start, if that was in the window; None for one that was overlooked before."""
    if stat.started < begun - CLOCK_SECONDS:
        return None
    return replace(stat, cpu_seconds=0, children_seconds=0, io_bytes=None if stat.io_bytes is None else 0)


def _ended(earlier: Mapping[int, Stat], now: Mapping[int, Stat]) -> dict[int, float]:
    """Processor time that processes which ended had used before, by parent."""
    found: dict[int, float] = {}
    for stat in earlier.values():
        if stat.pid not in now or not _same(stat, now[stat.pid]):
            total = stat.cpu_seconds + stat.children_seconds
            found[stat.parent] = found.get(stat.parent, 0) + total
    return found


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)


def _in_foreground(stat: Stat, owner: str, roots: Roots) -> bool:
    return any(
        shell.name == owner and shell.foreground == stat.group and stat.pid != pid
        for pid, shell in roots.shells.items()
    )
