"""Measuring: what Prometheus says about all pods, in five questions.

Shell: asks Prometheus.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hub_ext.errors import PrometheusError

from ..prometheus import Prometheus, Sample, quoted_any
from .facts import CpuFacts, GpuFacts
from .queries import build_queries
from .readings import Answers, Place, read_cores, read_gpus
from .signal import is_old

LAG: Final = timedelta(minutes=2)
"""How far the moment that an answer is of may be from now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What Prometheus said at one moment; None for what it did not."""

    at: datetime
    gpus: Mapping[Place, GpuFacts] | None = None
    cpus: Mapping[Place, CpuFacts] | None = None


class Meter:
    """Asks one Prometheus. Its errors are `PrometheusError`."""

    def __init__(
        self,
        prometheus: Prometheus,
        *,
        namespaces: Collection[str],
        window: timedelta = timedelta(minutes=10),
        sample_every: timedelta = timedelta(seconds=30),
        matchers: str = "",
    ) -> None:
        self._prometheus = prometheus
        self._window, self._sample = int(window.total_seconds()), int(sample_every.total_seconds())
        where = f"namespace=~{quoted_any(namespaces)}" if namespaces else ""
        self._queries = build_queries(self._window, matchers=matchers, cpu_matchers=where)

    async def gpus(
        self, at: datetime, places: Collection[Place], others: Collection[Place] = ()
    ) -> Mapping[Place, GpuFacts]:
        """Ask about the GPUs of these pods; if there are none, nothing is asked.

        Parameters
        ----------
        others
            Pods that asked for no GPU; they are told of where one is said to be theirs.
        """
        if not places:
            return {}
        ask, queries = self._prometheus.query, self._queries
        largest, samples, age = await asyncio.gather(
            ask(queries.largest), ask(queries.samples), ask(queries.age)
        )
        _check_moment(at, largest, samples, age)
        answers = Answers(
            at=at,
            window_seconds=self._window,
            sample_seconds=self._sample,
            largest=largest,
            samples=samples,
            age=age,
        )
        return await asyncio.to_thread(read_gpus, answers, places, others)

    async def cpus(self, at: datetime) -> Mapping[Place, CpuFacts]:
        """Ask about the processors of all pods."""
        ask, queries = self._prometheus.query, self._queries
        cores, parts = await asyncio.gather(ask(queries.cores), ask(queries.cores_samples))
        _check_moment(at, cores, parts)
        return await asyncio.to_thread(read_cores, cores, parts, at=at, window_seconds=self._window)


def _check_moment(now: datetime, *answers: Sequence[Sample]) -> None:
    """Refuse answers that are of another moment: the ages in them are of then, too."""
    for rows in answers:
        if rows and is_old(rows[0].time, now, LAG):
            raise PrometheusError(
                f"an answer is of {rows[0].time:%d %B, %H:%M:%S} UTC, and by the clock here it is "
                f"{now:%d %B, %H:%M:%S}: it was kept by something in between, or one of the clocks is wrong"
            )
