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
MOST: Final = 16
"""Groups of processes that are kept of each kind: those that use most processors, files, GPUs."""


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
        work=_work(report),
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


def _work(report: Report) -> tuple[Work, ...]:
    # A kernel's own sum also has what is too much for the list.
    trees = {(Origin.KERNEL, one.id): one.cpu for one in report.kernels if one.cpu}
    groups: dict[_Key, list[Process]] = {key: [] for key in trees}
    for one in report.processes:
        key = one.origin, one.owner if one.origin is not Origin.DETACHED else str(one.pid)
        if one.command in WATCHERS:
            if key in trees:
                trees[key] -= one.cpu or 0.0
        elif one.origin is not Origin.SERVER:
            groups.setdefault(key, []).append(one)
    found = [_group(key, of, trees.get(key), report.window_seconds) for key, of in groups.items()]
    return _busiest(found)


_Key = tuple[Origin, str]


def _group(key: _Key, members: list[Process], tree_cpu: float | None, window_seconds: float) -> Work:
    """Put together what belongs together."""
    origin, owner = key
    busiest = max(members, key=lambda one: (one.gpu or 0, one.cpu or 0, one.io_bytes or 0), default=None)
    cpus = [one.cpu for one in members if one.cpu is not None]
    read = _sum(one.io_bytes for one in members)
    return Work(
        origin=origin.value,
        owner=owner,
        command=busiest.command if busiest else "",
        cpu=max(sum(cpus), tree_cpu or 0.0) if cpus or tree_cpu is not None else None,
        io_rate=read / window_seconds if read is not None and window_seconds > 0 else None,
        gpu=max((one.gpu for one in members if one.gpu is not None), default=None),
        gpu_memory=_sum(one.gpu_memory_bytes for one in members),
        background=origin is Origin.TERMINAL and busiest is not None and _is_in_background(busiest),
    )


def _is_in_background(one: Process) -> bool:
    """Say whether somebody at its terminal does not see it; what a shell itself computes is seen."""
    return not one.foreground and one.command not in WAITERS


def _sum(values: Iterable[int | None]) -> int | None:
    known = [one for one in values if one is not None]
    return sum(known) if known else None


def _busiest(found: Iterable[Work]) -> tuple[Work, ...]:
    """Keep those that use most of anything: what moves files need not use processors."""
    kept = sorted(found, key=lambda one: (-(one.cpu or 0), -(one.io_rate or 0)))
    most = {id(one) for use in (_cpu, _io, _gpu) for one in sorted(kept, key=use, reverse=True)[:MOST]}
    return tuple(one for one in kept if id(one) in most)


def _cpu(one: Work) -> float:
    return one.cpu or 0.0


def _io(one: Work) -> float:
    return one.io_rate or 0.0


def _gpu(one: Work) -> tuple[float, int]:
    return one.gpu or 0.0, one.gpu_memory or 0
