"""A real Prometheus reads the imitated dcgm-exporter, and remembers what it is given of the past.

The queries are those by which GPU use is judged; what they get wrong is in here too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.devcluster.monitoring import (
    Card,
    Convention,
    Exporter,
    Pod,
    Prometheus,
    Series,
    Slice,
    Use,
    job_of,
    past,
    running_exporter,
    running_prometheus,
    shared_card,
    sliced_card,
    whole_card,
)
from tests.devcluster.monitoring.attribution import Device, Kubelet
from tests.devcluster.monitoring.exporter import Followed
from tests.devcluster.waiting import PATIENCE_SECONDS, until

UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
HOUR = 3600
ADA, VERA = Pod(namespace="hub", name="jupyter-ada"), Pod(namespace="hub", name="jupyter-vera")
CARD, CUT, SHARED, STUCK = (Card(index=number, uuid=f"GPU-{number}") for number in range(4))


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with running_exporter(tmp_path_factory.mktemp("exporter")) as exporter:
        yield exporter


@pytest.fixture(scope="module")
def now() -> float:
    """The end of the remembered hour."""
    return float(int(time.time()) - 60)


@pytest.fixture(scope="module")
def prometheus(
    exporter: Exporter, now: float, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    job = job_of(exporter, convention=Convention.STATIC)
    remembered = [
        *past(whole_card(CARD, Use(util=80), pod=ADA), job, start=now - HOUR, end=now),
        *past(whole_card(STUCK, Use(engine=0), pod=VERA), job, start=now - HOUR, end=now - 15 * 60),
    ]
    folder = tmp_path_factory.mktemp("prometheus")
    with running_prometheus(folder, job, every_seconds=0.5, history=remembered) as prometheus:
        yield prometheus


def values(result: list[dict[str, Any]], label: str) -> dict[str, float]:
    return {sample["metric"].get(label, ""): float(sample["value"][1]) for sample in result}


def test_windows_over_the_past(prometheus: Prometheus, now: float) -> None:
    def ask(function: str, field: str) -> dict[str, float]:
        return values(prometheus.query(f"{function}({field}[30m])", at=now), "pod")

    assert ask("avg_over_time", UTIL) == {"jupyter-ada": 80}
    assert ask("rate", UTIL) == {"jupyter-ada": 0}, "a steady load has no rate"
    assert ask("count_over_time", UTIL) == {"jupyter-ada": 60}
    assert ask("max_over_time", ENGINE) == {"jupyter-vera": 0}, "so it says of an exporter that is dead"
    assert ask("count_over_time", ENGINE) == {"jupyter-vera": 30}


def test_what_the_exporter_shows_is_scraped(prometheus: Prometheus, exporter: Exporter) -> None:
    exporter.show(
        *whole_card(CARD, Use(engine=0.5, util=38), pod=ADA),
        *sliced_card(CUT, Slice(profile="1g.18gb", instance=7, use=Use(engine=0.25, util=99), pod=VERA)),
        *shared_card(SHARED, Use(engine=0.9, util=93), [ADA, VERA]),
    )
    broken = f'max by (UUID) ({UTIL}{{pod=""}}) > 10 unless on (UUID) (sum by (UUID) ({UTIL}{{pod!=""}}) > 1)'
    wanted = {
        f"max by (UUID) ({ENGINE})": {CARD.uuid: 0.5, CUT.uuid: 0.25, SHARED.uuid: 0.9},
        f'{UTIL}{{GPU_I_ID!=""}}': {},
        broken: {SHARED.uuid: 93},
    }

    def missing() -> str | None:
        # A scrape that took too long leaves nothing until the next one.
        found = {query: values(prometheus.query(query), "UUID") for query in wanted}
        return None if found == wanted else str(found)

    until(missing, what="what the exporter shows")


@pytest.mark.parametrize("convention", Convention)
def test_labels_are_those_of_a_real_scrape(
    convention: Convention, prometheus: Prometheus, exporter: Exporter
) -> None:
    card = Card(uuid=f"GPU-{convention}")
    readings = [*whole_card(card, Use(util=1), pod=ADA), *whole_card(card, Use(engine=1))]
    job = job_of(exporter, convention=convention)
    exporter.show(*readings)
    prometheus.scrape(job, every_seconds=0.5)
    wanted = [
        {"__name__": field, **job.stored(exporter.address, reading.labels())}
        for field, reading in zip((UTIL, ENGINE), readings, strict=True)
    ]

    def missing() -> str | None:
        # What the exporter said before under other labels may be there for a while.
        found = [sample["metric"] for sample in prometheus.query(f'{{UUID="{card.uuid}"}}')]
        return None if all(labels in found for labels in wanted) else f"series {found}"

    until(missing, what=f"series with {wanted}")


def test_a_failing_exporter_is_down_and_its_values_go(prometheus: Prometheus, exporter: Exporter) -> None:
    card = Card(uuid="GPU-failing")
    exporter.show(*whole_card(card, Use(util=1)))
    prometheus.scrape(job_of(exporter), every_seconds=0.5)
    prometheus.wait_for(f'{UTIL}{{UUID="{card.uuid}"}}')
    exporter.fail()
    prometheus.wait_for("up == 0")
    prometheus.wait_for(f'absent({UTIL}{{UUID="{card.uuid}"}})')
    exporter.recover()
    prometheus.wait_for("up == 1")


@pytest.mark.parametrize(("path", "body"), [("cards", b"[]"), ("readings", b'[{"card": {}}]')])
def test_a_wrong_setting_changes_nothing(path: str, body: bytes, exporter: Exporter) -> None:
    before = exporter.page()
    answer = httpx.put(
        f"http://{exporter.address}/{path}", content=body, trust_env=False, timeout=PATIENCE_SECONDS
    )
    assert answer.status_code == 400
    assert exporter.page() == before


def test_any_series_can_be_remembered(tmp_path: Path, now: float) -> None:
    labels = {"namespace": "hub", "pod": "jupyter-ada", "resource": "nvidia_com_gpu"}
    series = Series(name="kube_pod_container_resource_requests", labels=labels, samples=[(now, 1)])
    with running_prometheus(tmp_path, history=[series]) as prometheus:
        (sample,) = prometheus.query(series.name, at=now)
    assert sample["metric"] == {"__name__": series.name, **labels}


def test_an_exporter_follows_a_node(tmp_path: Path) -> None:
    kubelet = Kubelet(checkpoint=tmp_path / "checkpoint", logs=tmp_path / "pods")
    entry = {
        "PodUID": "uid",
        "ContainerName": "notebook",
        "ResourceName": "nvidia.com/gpu",
        "DeviceIDs": {"-1": [CARD.uuid]},
    }
    node = Followed(kubelet=kubelet, devices=(Device(card=CARD),))
    with running_exporter(tmp_path, node=node) as exporter:
        assert f"{UTIL}{{" in exporter.page()
        assert "pod=" not in exporter.page()
        kubelet.checkpoint.write_text(json.dumps({"Data": {"PodDeviceEntries": [entry]}}))
        (kubelet.logs / "hub_jupyter-ada_uid").mkdir(parents=True)
        assert 'pod="jupyter-ada"} 0\n' in exporter.page()
        exporter.follow({ADA: Use(util=40)})
        assert 'pod="jupyter-ada"} 40\n' in exporter.page()
        exporter.show(*whole_card(CUT, Use(util=1)))
        assert CARD.uuid not in exporter.page()
        exporter.follow()
        assert 'pod="jupyter-ada"} 0\n' in exporter.page()
