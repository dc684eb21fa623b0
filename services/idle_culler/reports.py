"""From an agent's report to what is kept of it.

Processes that only watch are left out here: a screen that refreshes itself is no work.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from hub_ext.protocol import Kernel, Origin, Process, Report, Terminal

from .facts import AgentFacts, KernelFacts, TerminalFacts, Work

WATCHERS: Final = frozenset(
    {"top", "htop", "btop", "atop", "nvtop", "nvitop", "gpustat", "nvidia-smi", "watch", "tail", "less"}
    | {"more", "man"}
)
"""Commands that only show something: neither their processor time nor their output is work."""
WAITERS: Final = frozenset(
    {"bash", "sh", "zsh", "fish", "dash", "tmux", "tmux: server", "tmux: client", "screen"}
    | {"vi", "vim", "nvim", "nano", "emacs"}
)
"""Commands that wait for the user while they are in the foreground; what they compute counts all the same."""
LARGEST: Final = 16
"""Groups of processes that are kept, the busiest first."""


def reduce_report(report: Report, received: datetime) -> AgentFacts:
    """Keep of a report what judgements need.

    Parameters
    ----------
    received
        By the culler's clock: the pod's own may be wrong.
    """
    return AgentFacts(
        at=received,
        window_seconds=report.window_seconds,
        complete=report.complete,
        work=_work(report.processes, report.window_seconds),
        kernels=tuple(_kernel(one) for one in report.kernels),
        terminals=tuple(_terminal(one) for one in report.terminals),
        gpu_use={one.uuid: one.use for one in report.gpus},
        attribution=report.self_test.attribution,
        unsaved=None if report.documents is None else len(report.documents),
        input_seconds=report.input_seconds,
    )


def _kernel(one: Kernel) -> KernelFacts:
    return KernelFacts(
        id=one.id,
        state=one.state,
        state_seconds=one.state_seconds,
        connections=one.connections,
        waits_for_input=one.waits_for_input,
        name=one.path.rpartition("/")[2] or one.name,
    )


def _terminal(one: Terminal) -> TerminalFacts:
    watches = one.foreground in WATCHERS
    return TerminalFacts(
        name=one.name,
        foreground="" if watches or one.foreground in WAITERS else one.foreground,
        quiet_seconds=None if watches else one.quiet_seconds,
    )


def _work(processes: Iterable[Process], window_seconds: float) -> tuple[Work, ...]:
    groups: dict[tuple[str, str], list[Process]] = {}
    for one in processes:
        if one.origin is Origin.SERVER or one.command in WATCHERS:
            continue
        owner = one.owner if one.origin is not Origin.DETACHED else str(one.pid)
        groups.setdefault((one.origin.value, owner), []).append(one)
    found = [_group(origin, owner, members, window_seconds) for (origin, owner), members in groups.items()]
    return tuple(sorted(found, key=lambda one: (-(one.cpu or 0), -(one.io_rate or 0))))[:LARGEST]


def _group(origin: str, owner: str, members: list[Process], window_seconds: float) -> Work:
    busiest = max(members, key=lambda one: (one.cpu or 0, one.io_bytes or 0))
    cpus = [one.cpu for one in members if one.cpu is not None]
    read = [one.io_bytes for one in members if one.io_bytes is not None]
    return Work(
        origin=origin,
        owner=owner,
        command=busiest.command,
        cpu=sum(cpus) if cpus else None,
        io_rate=sum(read) / window_seconds if read and window_seconds > 0 else None,
    )
