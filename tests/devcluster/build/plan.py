"""Which build steps are to be done, in which order, and how long that will take.

Pure, but for one question: whether a step's target is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from tests.devcluster.build.errors import UnknownNameError


class Shell(Protocol):
    """Runs a step's commands, writing what they say into the step's log."""

    def __call__(
        self,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdout: Path | None = None,
    ) -> None:
        """Run one command; `env` is added to the environment, `stdout` takes its output instead of the log.

        Raises `StepError` when it ends with an error.
        """


BATCH_BYTES = 11_000_000_000
"""Room for one batch; with the sources and results of all others, everything then stays under 20 GB."""


class Pool(StrEnum):
    """What a step mostly waits for; steps of different pools run side by side."""

    DOWNLOAD = "download"
    COMPILE = "compile"
    IMAGE = "image"


LIMITS: Mapping[Pool, int] = {Pool.DOWNLOAD: 2, Pool.COMPILE: 2, Pool.IMAGE: 1}
"""Steps of one pool at a time. Two compiles: one links (a single core) while the other compiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to build."""

    name: str
    """As shown to people; unique."""
    target: Path
    """In the cache; the step is done when it is there."""
    make: Callable[[Path, Shell], None]
    """Writes the thing to the path it is given, not to `target`: that appears only when all went well."""
    needs: tuple[str, ...] = ()
    """Names of steps whose targets `make` reads."""
    pool: Pool = Pool.IMAGE
    lane: str = ""
    """Steps of one lane never run at the same time, in this process or another: they share inputs that the
    second then finds already compiled. Empty: a lane of its own."""
    seconds: float = 1
    """Rough cost on two cores; decides the order and the estimate of what is left."""


def steps_missing(
    names: Iterable[str], steps: Mapping[str, Step], *, exists: Callable[[Path], bool] = Path.exists
) -> list[Step]:
    """The steps to be done for `names`, most urgent first.

    What is there already needs nothing; what it was made from may long be gone. Urgent is what the longest
    chain of other steps waits for, so that the biggest comes first.

    Raises `UnknownNameError`.
    """
    missing: dict[str, Step] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in steps:
            raise UnknownNameError(name, steps)
        step = steps[name]
        if name not in missing and not exists(step.target):
            missing[name] = step
            waiting += step.needs
    chain = _chains(missing)
    return sorted(missing.values(), key=lambda step: (-chain[step.name], step.name))


def _chains(steps: Mapping[str, Step]) -> dict[str, float]:
    """Seconds from each step's start to the end of the last step that hangs on it, its lane included."""
    lanes: dict[str, float] = {}
    for step in steps.values():
        if step.lane:
            lanes[step.lane] = lanes.get(step.lane, 0) + step.seconds
    dependants: dict[str, list[Step]] = {}
    for step in steps.values():
        for need in step.needs:
            dependants.setdefault(need, []).append(step)

    def chain(step: Step) -> float:
        after = max((max(chain(d), lanes.get(d.lane, 0)) for d in dependants.get(step.name, ())), default=0)
        return step.seconds + after

    return {name: chain(step) for name, step in steps.items()}


def batches(missing: Sequence[Step], *, budget: int = BATCH_BYTES) -> list[list[Step]]:
    """Split the missing steps so that no batch needs more room than the budget, if it can be helped.

    Steps that need one another or share a lane stay together, and the order is kept: compiled packages may be
    dropped between two batches at little cost.
    """
    parts: list[tuple[set[str], list[Step]]] = []
    for step in missing:
        ties = {step.name, *step.needs, *([f"lane {step.lane}"] if step.lane else [])}
        tied = [part for part in parts if part[0] & ties]
        parts = [part for part in parts if not part[0] & ties]
        parts.append(
            (ties.union(*(names for names, _ in tied)), [s for _, part in tied for s in part] + [step])
        )
    order = {step.name: at for at, step in enumerate(missing)}
    groups = [sorted(part, key=lambda step: order[step.name]) for _, part in parts]
    packed: list[list[Step]] = []
    for group in sorted(groups, key=lambda group: order[group[0].name]):
        if packed and bytes_needed([*packed[-1], *group]) <= budget:
            packed[-1] += group
        else:
            packed.append(list(group))
    return [sorted(batch, key=lambda step: order[step.name]) for batch in packed]


def startable(waiting: Sequence[Step], running: Sequence[Step]) -> list[Step]:
    """Those of the waiting steps that can start now beside the running ones, in the given order."""
    blocked = {step.name for step in (*waiting, *running)}
    busy_lanes = {step.lane for step in running if step.lane}
    room = {pool: limit - sum(step.pool is pool for step in running) for pool, limit in LIMITS.items()}
    chosen: list[Step] = []
    for step in waiting:
        if room[step.pool] > 0 and step.lane not in busy_lanes and not blocked.intersection(step.needs):
            chosen.append(step)
            room[step.pool] -= 1
            if step.lane:
                busy_lanes.add(step.lane)
    return chosen


def bytes_needed(missing: Iterable[Step]) -> int:
    """Room that the steps take while they are carried out, sources and compiled packages included.

    Source: measured; all programs left 13 GB of compiled packages and 6 GB of sources, for 1,800 s by the
    table's costs.
    """
    return round(sum(step.seconds for step in missing) * 10e6)


def seconds_left(*, done: float, left: float, elapsed: float) -> float:
    """Estimate what is left, from rough costs scaled by how long the finished ones really took.

    `done` and `left` are sums of `Step.seconds`, `elapsed` is real time. One minute at the table's speed is
    taken as already seen, so that the first small step does not make the estimate jump.
    """
    return left * (elapsed + 60) / (done + 60)
