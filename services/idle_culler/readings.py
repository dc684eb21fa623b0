"""From the answers of Prometheus to readings per pod: whose series is whose, and which cannot be trusted.

Cards that several pods share have, beside the series of each pod, one of the card as a whole. Where the card
works and its pods together do not, the exporter lost track of who is who (it then writes zeros for all).

Pure: no clock, no network.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Final, Protocol

from .facts import CpuFacts, GpuFacts, GpuReading
from .queries import METER

Place = tuple[str, str]
"""Namespace and name of a pod; two empty texts for a card as a whole."""
CARD: Final[Place] = ("", "")
LIVE: Final = 60.0
"""Seconds by which two exporters that both go on may differ in their newest samples."""
WORKING_CARD: Final = 0.02
"""Use of a shared card from which on some pod must be using it."""


class Row(Protocol):
    """One series of an answer."""

    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def value(self) -> float | None: ...


@dataclass(slots=True, kw_only=True)
class _Meter:
    largest: float | None = None
    counts: dict[str, float] = field(default_factory=dict)
    """Samples by exporter."""
    ages: dict[str, float] = field(default_factory=dict)

    @property
    def samples(self) -> float:
        """How many there are: a restarted exporter goes on where the one before ended, two at once do not."""
        last = LIVE + (self.age or 0.0)
        live = [number for exporter, number in self.counts.items() if self.ages.get(exporter, inf) <= last]
        return max(live, default=0.0) + sum(self.counts.values()) - sum(live)

    @property
    def age(self) -> float | None:
        return min(self.ages.values(), default=None)


@dataclass(slots=True, kw_only=True)
class _Device:
    engine: _Meter = field(default_factory=_Meter)
    utilization: _Meter = field(default_factory=_Meter)


_DeviceKey = tuple[str, str]
_Table = dict[Place, dict[_DeviceKey, _Device]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the queries of `Queries` gave."""

    at: datetime
    window_seconds: int
    sample_seconds: int
    """Between two samples, at most; the most complete series of the answer may say that it is less."""
    largest: Sequence[Row]
    samples: Sequence[Row]
    age: Sequence[Row]


def read_gpus(answers: Answers, pods: Iterable[Place], others: Iterable[Place] = ()) -> dict[Place, GpuFacts]:
    """Give what is known about the GPUs of pods.

    Parameters
    ----------
    pods
        Those that asked for GPUs: they are told of, whether or not they have any series.
    others
        Pods of servers that did not, but may have come by one otherwise; they are told of if they have.
    """
    table = _collect(answers)
    most = [row.value for row in answers.samples if row.value is not None]
    whole = max([answers.window_seconds / answers.sample_seconds, *most])
    wanted = set(pods)
    broken = bool(table) and bool(wanted) and not any(place in table for place in wanted)
    wanted |= set(others) & table.keys()
    cards = _cards(table, wanted)
    sums = _sums(table, wanted)
    found: dict[Place, GpuFacts] = {}
    for place in wanted:
        devices = table.get(place, {})
        found[place] = GpuFacts(
            at=answers.at,
            window_seconds=answers.window_seconds,
            gpus=tuple(
                _reading(key, device, cards.get(key), sums.get(key[0], 0.0), whole)
                for key, device in sorted(devices.items())
            ),
            labels_broken=broken,
        )
    return found


def _collect(answers: Answers) -> _Table:
    exported = {
        row.labels.get("instance", "") for row in answers.largest if row.labels.get("exported_pod", "")
    }
    table: _Table = defaultdict(lambda: defaultdict(_Device))
    for row in answers.largest:
        if row.value is not None and row.value >= 0:  # less than nothing is no measurement
            meter = _meter(table, row, exported)
            meter.largest = row.value if meter.largest is None else max(meter.largest, row.value)
    for row in answers.samples:
        if row.value is not None:
            counts, exporter = _meter(table, row, exported).counts, row.labels.get("instance", "")
            counts[exporter] = max(row.value, counts.get(exporter, 0.0))
    for row in answers.age:
        if row.value is not None:
            ages, exporter = _meter(table, row, exported).ages, row.labels.get("instance", "")
            ages[exporter] = min(row.value, ages.get(exporter, row.value))
    return table


def _meter(table: _Table, row: Row, exported: set[str]) -> _Meter:
    labels = row.labels
    device = table[_place(labels, exported)][labels.get("UUID", ""), labels.get("GPU_I_ID", "")]
    return device.engine if labels.get(METER) == "engine" else device.utilization


def _place(labels: Mapping[str, str], exported: set[str]) -> Place:
    """Say whose series it is.

    Where any series of an exporter has `exported_pod`, plain `pod` names the exporter itself.
    """
    if pod := labels.get("exported_pod", ""):
        return labels.get("exported_namespace", ""), pod
    if not labels.get("pod", "") or labels.get("instance", "") in exported:
        return CARD
    return labels.get("namespace", ""), labels["pod"]


def _cards(table: _Table, wanted: set[Place]) -> dict[_DeviceKey, _Device]:
    """Give the series of cards as a whole, and of whoever else has them.

    Where labels are honored, a line without a pod gets the exporter's own: it looks like one more pod.
    """
    cards: dict[_DeviceKey, _Device] = {}
    for place, devices in table.items():
        if place not in wanted:
            for key, device in devices.items():
                known = cards.get(key)
                cards[key] = device if known is None else max(known, device, key=_use)
    return cards


def _use(device: _Device) -> float:
    return max(device.utilization.largest or 0.0, device.engine.largest or 0.0)


def _sums(table: _Table, wanted: set[Place]) -> dict[str, float]:
    """Add up by card what the pods of servers are said to use of it."""
    sums: dict[str, float] = defaultdict(float)
    for place in wanted & table.keys():
        for (uuid, _), device in table[place].items():
            sums[uuid] += device.utilization.largest or 0.0
    return sums


def _reading(key: _DeviceKey, device: _Device, card: _Device | None, used: float, whole: float) -> GpuReading:
    uuid, instance = key
    shared = card is not None and not instance and device.utilization.largest is not None
    of_card = _use(card) if card else 0.0
    meter = device.utilization if shared or device.engine.largest is None else device.engine
    return GpuReading(
        uuid=uuid,
        slice=instance,
        engine=device.engine.largest,
        utilization=device.utilization.largest,
        coverage=min(1.0, meter.samples / whole),
        age_seconds=meter.age,
        shared=shared,
        unmapped=card is not None and not instance and of_card >= WORKING_CARD and used < WORKING_CARD / 2,
    )


def read_cores(
    cores: Iterable[Row], coverage: Iterable[Row], *, at: datetime, window_seconds: int
) -> dict[Place, CpuFacts]:
    """Give the processors that pods used."""
    parts = {_pod(row): row.value for row in coverage}
    return {
        _pod(row): CpuFacts(
            at=at, window_seconds=window_seconds, cores=row.value, coverage=parts.get(_pod(row))
        )
        for row in cores
    }


def _pod(row: Row) -> Place:
    return row.labels.get("namespace", ""), row.labels.get("pod", "")
