"""Samples of the past, so that nobody waits half an hour for a window of half an hour. Pure.

`promtool tsdb create-blocks-from openmetrics` makes of them what Prometheus would have stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.devcluster.monitoring.dcgm import Reading, braced
from tests.devcluster.monitoring.scrape import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series as Prometheus stores it."""

    name: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]
    """Unix time in seconds and value, oldest first."""


def past(
    readings: Iterable[Reading], job: Job, *, start: float, end: float, every: float = 30
) -> list[Series]:
    """The series of readings that stayed the same from `start` to `end`, as the job's first target has them.

    `every` is the time between two scrapes, in seconds.
    """
    times = [start + every * step for step in range(math.floor((end - start) / every) + 1)]
    target = next(iter(job.targets))
    return [
        Series(
            name=field,
            labels=job.stored(target, reading.labels()),
            samples=[(time, value) for time in times],
        )
        for reading in readings
        for field, value in reading.values.items()
    ]


def open_metrics(series: Iterable[Series]) -> str:
    """All samples as OpenMetrics text; series of one name stand together, as the format demands."""
    by_name: dict[str, list[Series]] = {}
    for one in series:
        by_name.setdefault(one.name, []).append(one)
    lines: list[str] = []
    for name, same in by_name.items():
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{braced(one.labels)} {value} {time}" for one in same for time, value in one.samples]
    return "\n".join([*lines, "# EOF", ""])
