"""The idle-culler's questions, asked of a real Prometheus that remembers what exporters really say.

Each pod stands for one way in which a plain query would be wrong.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.idle_culler.facts import GpuFacts
from services.idle_culler.gpu_signal import judge_gpu
from services.idle_culler.measure import Meter
from services.idle_culler.policy import Thresholds
from services.idle_culler.reasons import Reason
from services.idle_culler.signal import Value
from services.prometheus import Prometheus as Client
from tests.devcluster.monitoring import (
    Card,
    Convention,
    Exporter,
    Job,
    Pod,
    Prometheus,
    Reading,
    Series,
    Slice,
    Use,
    job_of,
    past,
    running_prometheus,
    shared_card,
    sliced_card,
    whole_card,
)

NAMESPACE, EVERY, SPAN, LATER = "hub", 30, 1800, 300
BUSY, IDLE, UNKNOWN = Value.BUSY, Value.IDLE, Value.UNKNOWN


def pod(name: str) -> Pod:
    return Pod(namespace=NAMESPACE, name=f"jupyter-{name}")


def card(name: str) -> Card:
    return Card(uuid=f"GPU-{name}")


def whole(name: str, *, number: str = "", **use: float) -> tuple[Reading, ...]:
    return whole_card(card(name + number), Use(**use), pod=pod(name))


STEADY: tuple[Reading, ...] = (
    *whole("idle", engine=0, util=0),
    *whole("steady", util=80),
    *whole("stuck", engine=0, util=99),
    *whole("two", engine=0),
    *whole("two", number="b", engine=0.4),
    *sliced_card(
        card("cut"),
        Slice(profile="1g.18gb", instance=7, use=Use(engine=0.35), pod=pod("mia")),
        Slice(profile="1g.18gb", instance=8, use=Use(engine=0), pod=pod("moe")),
    ),
    *shared_card(
        card("shared"), Use(engine=0.9, util=93), {pod("ts1"): Use(util=92), pod("ts2"): Use(util=0)}
    ),
    *shared_card(card("lost"), Use(engine=0.9, util=95), [pod("x1"), pod("x2")]),
    *shared_card(card("owned"), Use(engine=0.9, util=95), [pod("first"), pod("last")], virtual=False),
)
EXPECTED = {
    "idle": [(IDLE, Reason.GPU_QUIET)],
    "steady": [(BUSY, Reason.GPU_ACTIVE)],
    "stuck": [(UNKNOWN, Reason.METERS_DISAGREE)],
    "two": [(IDLE, Reason.GPU_QUIET), (BUSY, Reason.GPU_ACTIVE)],
    "mia": [(BUSY, Reason.GPU_ACTIVE)],
    "moe": [(IDLE, Reason.GPU_QUIET)],
    "ts1": [(BUSY, Reason.GPU_ACTIVE)],
    "ts2": [(IDLE, Reason.GPU_QUIET)],
    "x1": [(UNKNOWN, Reason.NOT_ATTRIBUTED)],
    "x2": [(UNKNOWN, Reason.NOT_ATTRIBUTED)],
    "first": [],
    "last": [(BUSY, Reason.GPU_ACTIVE)],
    "dead": [(UNKNOWN, Reason.GPU_STALE)],
    "gappy": [(UNKNOWN, Reason.GPU_GAPS)],
    "burst": [(BUSY, Reason.GPU_ACTIVE)],
    "no-metric": [],
}


def history(job: Job, now: float) -> list[Series]:
    """Half an hour of all of it; what is still heard is so for some minutes more, until it is asked for."""
    start, end = now - SPAN, now + LATER

    def quiet(name: str, *spans: tuple[float, float]) -> list[Series]:
        parts = [past(whole(name, engine=0), job, start=a, end=b, every=EVERY) for a, b in spans]
        (first,) = parts[0]
        return [
            Series(name=first.name, labels=first.labels, samples=[s for p in parts for s in p[0].samples])
        ]

    (burst,) = past(whole("burst", engine=0), job, start=start, end=end, every=EVERY)
    bumpy = [(at, 0.9 if at == now - 10 * EVERY else 0.0) for at, _ in burst.samples]
    return [
        *past(STEADY, job, start=start, end=end, every=EVERY),
        *quiet("dead", (start, now - 240)),
        *quiet("gappy", (start, now - 500), (now - 150, end)),
        Series(name=burst.name, labels=burst.labels, samples=bumpy),
        *(_cpu(name, rate, start, end) for name, rate in (("idle", 0.01), ("steady", 1.2))),
    ]


def _cpu(name: str, rate: float, start: float, end: float) -> Series:
    """The counter of one container, as the kubelet's cAdvisor has it."""
    labels = {"namespace": NAMESPACE, "pod": f"jupyter-{name}", "container": "notebook"}
    times = [start + EVERY * number for number in range(int(end - start) // EVERY + 1)]
    samples = [(at, 100 + rate * (at - start)) for at in times]
    return Series(name="container_cpu_usage_seconds_total", labels=labels, samples=samples)


@pytest.fixture(scope="module", params=list(Convention))
def prometheus(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    folder: Path = tmp_path_factory.mktemp(f"prometheus-{request.param}")
    job = job_of(Exporter("127.0.0.1:1"), convention=request.param)
    with running_prometheus(folder, history=history(job, float(int(time.time())))) as prometheus:
        yield prometheus


@pytest.fixture
async def meter(prometheus: Prometheus) -> AsyncIterator[Meter]:
    async with Client(prometheus.url) as client:
        yield Meter(client, namespaces=[NAMESPACE])


async def test_each_pod_is_read_for_what_it_is(meter: Meter) -> None:
    places = [(NAMESPACE, f"jupyter-{name}") for name in EXPECTED]
    found = await meter.gpus(datetime.now(UTC), places)
    assert {name: _judged(found[NAMESPACE, f"jupyter-{name}"]) for name in EXPECTED} == EXPECTED


def _judged(facts: GpuFacts) -> list[tuple[Value, Reason]]:
    return sorted((judge_gpu(one, Thresholds()) for one in facts.gpus), reverse=True)


async def test_processors_are_counted_at_their_most(meter: Meter) -> None:
    found = await meter.cpus(datetime.now(UTC))
    cores = {pod: facts.cores for (_, pod), facts in found.items()}
    assert cores == {
        "jupyter-idle": pytest.approx(0.01, abs=0.005),
        "jupyter-steady": pytest.approx(1.2, abs=0.1),
    }
    assert all((facts.coverage or 0) >= 0.9 for facts in found.values())
