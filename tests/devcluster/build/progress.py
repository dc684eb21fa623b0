"""What is shown while things are built: one line per change, or a live display on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table


class Change(StrEnum):
    """Why a state is reported."""

    PLANNED = "planned"
    STARTED = "started"
    FINISHED = "finished"
    WAITING = "waiting"
    """Another process is building the same; its result will be taken."""
    TICK = "tick"
    """Nothing but time has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a build stands at one moment."""

    change: Change
    step: str = ""
    """The step that started, finished or waits; empty for the others."""
    seconds: float = 0
    """How long the finished step took."""
    done: int
    total: int
    running: tuple[tuple[str, float], ...] = ()
    """Name of each running step and since how many seconds it runs."""
    waiting: tuple[str, ...] = ()
    """Steps still to start, the next first."""
    seconds_left: float = 0


Report = Callable[[State], None]

SHOWN = 3
"""So many of the waiting steps are named."""


def duration(seconds: float) -> str:
    """Say a duration as people do: `8 s`, `3 min 20 s`, `26 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 5 and rest else f"{minutes} min"


def upcoming(waiting: tuple[str, ...]) -> str:
    """Name what comes next: `kubelet, kubectl and 5 more`."""
    more = len(waiting) - SHOWN
    named = ", ".join(waiting[:SHOWN])
    return f"{named} and {more} more" if more > 0 else named


def line(state: State) -> str | None:
    """The plain line for a state, or `None` where nothing is worth a line."""
    count = f"[{state.done:>{len(str(state.total))}}/{state.total}]"
    left = f"; about {duration(state.seconds_left)} left" if state.seconds_left >= 1 else ""
    then = f"; then {upcoming(state.waiting)}" if state.waiting else ""
    match state.change:
        case Change.PLANNED:
            return f"{count} to build: {upcoming(state.waiting)}{left}"
        case Change.STARTED:
            return f"{count} {state.step} …{then}"
        case Change.FINISHED:
            return f"{count} {state.step}: {duration(state.seconds)}{left}"
        case Change.WAITING:
            return f"{count} {state.step}: another process is building it; waiting for that"
        case Change.TICK:
            return None


def plain(stream: TextIO) -> Report:
    """Report by lines, for logs and pipes."""

    def report(state: State) -> None:
        text = line(state)
        if text is not None:
            print(text, file=stream, flush=True)

    return report


def silent(_: State) -> None:
    """Report nothing."""


def rows(state: State) -> list[str]:
    """The lines below the bar of the live display."""
    running = [f"{name} … {duration(seconds)}" for name, seconds in state.running]
    then = [f"then {upcoming(state.waiting)}"] if state.waiting else []
    left = [f"about {duration(state.seconds_left)} left"] if state.seconds_left >= 1 else []
    return [*running, *then, *left]


@contextlib.contextmanager
def live(console: Console) -> Iterator[Report]:
    """Report on a terminal: finished steps scroll by, the bar and what runs stay below."""
    bar = Progress(
        TextColumn("building"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        console=console,
    )
    task = bar.add_task("build", total=1)

    def view(state: State) -> Table:
        grid = Table.grid()
        grid.add_row(bar)
        for row in rows(state):
            grid.add_row(f"  {row}")
        return grid

    with Live(console=console, auto_refresh=False, transient=True) as display:

        def report(state: State) -> None:
            if state.change in (Change.FINISHED, Change.WAITING):
                console.print(line(state), markup=False, highlight=False)
            bar.update(task, total=state.total, completed=state.done)
            display.update(view(state), refresh=True)

        yield report


@contextlib.contextmanager
def shown(report: Report | None = None, stream: TextIO | None = None) -> Iterator[Report]:
    """The given report, or the one that fits the stream (standard error): live on a terminal, else plain."""
    stream = stream or sys.stderr
    if report is not None:
        yield report
    elif stream.isatty():
        with live(Console(file=stream)) as on_terminal:
            yield on_terminal
    else:
        yield plain(stream)
