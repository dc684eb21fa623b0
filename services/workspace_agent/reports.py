"""Makes the report to the culler of what was read. States facts, judges nothing.

Pure: no clock, `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hub_ext.protocol import Document, Kernel, Origin, Process, Report, SelfTest, Terminal

from .gpus import GpuReading
from .processes import Use, foreground_command, tree_cpu
from .states import KernelState, TerminalState

MOST_PROCESSES = 64
"""Listed in a report, those that used most first; the protocol takes more, but a person reads them too."""
MOST_ENTRIES = 64
MOST_DOCUMENTS = 256
WORD, LINE = 80, 1024
"""Lengths that the protocol takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Everything that was read at one time."""

    uses: tuple[Use, ...] = ()
    window_seconds: float
    gpus: GpuReading = field(default_factory=GpuReading)
    kernels: tuple[KernelState, ...] = ()
    terminals: tuple[TerminalState, ...] = ()
    complete: bool = True
    """False where a reader failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabState:
    """What the open JupyterLab pages told."""

    documents: tuple[Document, ...] | None = None
    input_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who reports."""

    server: str
    agent: str
    """Drawn when the agent started."""
    number: int
    """Of the report."""


class StateClock:
    """How long each kernel has been in its state, as far as it was watched."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[str, float]] = {}

    def seconds(self, states: Mapping[str, str], now: float) -> dict[str, float]:
        """Note the kernels' states at a time and say for how long each has been seen in its own."""
        self._since = {kernel: (state, self._begun(kernel, state, now)) for kernel, state in states.items()}
        return {kernel: now - begun for kernel, (_, begun) in self._since.items()}

    def _begun(self, kernel: str, state: str, now: float) -> float:
        known = self._since.get(kernel)
        return known[1] if known and known[0] == state else now


def build_report(
    sample: Sample,
    sender: Sender,
    *,
    self_test: SelfTest,
    lab: LabState,
    state_seconds: Mapping[str, float],
    now: datetime,
) -> Report:
    """The report of one sample."""
    listed = _most_used(sample)
    return Report(
        server=sender.server,
        agent=sender.agent,
        number=sender.number,
        sent=now,
        window_seconds=sample.window_seconds,
        complete=sample.complete and sample.gpus.complete,
        processes=tuple(_process(use, sample) for use in listed[:MOST_PROCESSES]),
        kernels=tuple(_kernel(kernel, sample, state_seconds) for kernel in sample.kernels[:MOST_ENTRIES]),
        terminals=tuple(_terminal(terminal, sample, now) for terminal in sample.terminals[:MOST_ENTRIES]),
        gpus=sample.gpus.gpus[:MOST_ENTRIES],
        self_test=self_test,
        documents=lab.documents if lab.documents is None else lab.documents[:MOST_DOCUMENTS],
        input_seconds=lab.input_seconds,
    )


def cut(text: str, length: int) -> str:
    """A text that fits, its end left out if need be. Names of files and programs need not be text at all."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _most_used(sample: Sample) -> Sequence[Use]:
    """What may be work, busiest first; the server and what keeps it running are left out."""
    gpus = sample.gpus

    def rank(use: Use) -> tuple[float, float, int, int]:
        pid = use.stat.pid
        return (
            -gpus.use.get(pid, 0),
            -(use.cpu or 0),
            -(use.io_bytes or 0),
            -gpus.memory_bytes.get(pid, 0),
        )

    return sorted((use for use in sample.uses if use.origin is not Origin.SERVER), key=rank)


def _process(use: Use, sample: Sample) -> Process:
    pid, memory = use.stat.pid, sample.gpus.memory_bytes
    return Process(
        pid=pid,
        command=cut(use.stat.command, WORD),
        origin=use.origin,
        owner=cut(use.owner, WORD),
        cpu=use.cpu,
        io_bytes=use.io_bytes,
        gpu_memory_bytes=memory.get(pid),
        gpu=sample.gpus.use.get(pid),
        foreground=use.foreground,
    )


def _kernel(kernel: KernelState, sample: Sample, state_seconds: Mapping[str, float]) -> Kernel:
    return Kernel(
        id=cut(kernel.id, WORD),
        name=cut(kernel.name, WORD),
        path=cut(kernel.path, LINE),
        state=cut(kernel.state, WORD),
        state_seconds=state_seconds.get(kernel.id),
        connections=kernel.connections,
        waits_for_input=kernel.waits_for_input,
        cpu=None if kernel.pid is None else tree_cpu(sample.uses, kernel.pid, kernel.id),
    )


def _terminal(terminal: TerminalState, sample: Sample, now: datetime) -> Terminal:
    shell, last = terminal.shell, terminal.last_activity
    return Terminal(
        name=cut(shell.name, WORD),
        foreground=cut(foreground_command(sample.uses, shell), WORD),
        quiet_seconds=None if last is None else max((now - last).total_seconds(), 0),
        cpu=tree_cpu(sample.uses, terminal.pid, shell.name, without_root=True),
    )


def pids_of(kernels: Iterable[KernelState]) -> dict[int, str]:
    """The local kernels by process id."""
    return {kernel.pid: kernel.id for kernel in kernels if kernel.pid is not None}
