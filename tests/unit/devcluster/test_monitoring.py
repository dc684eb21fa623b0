"""The imitated dcgm-exporter says what the real one would; history is what Prometheus would have stored."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.devcluster.monitoring.dcgm import (
    Card,
    Field,
    Pod,
    Reading,
    Slice,
    Use,
    render,
    shared_card,
    sliced_card,
    whole_card,
)
from tests.devcluster.monitoring.history import open_metrics, past
from tests.devcluster.monitoring.scrape import Job, build_config

CARD = Card(uuid="GPU-a", node="gpu-1")
ADA, VERA = Pod(namespace="hub", name="jupyter-ada"), Pod(namespace="hub", name="jupyter-vera")
BUSY = Use(engine=0.9, util=93, memory_mib=1000)


def pods_of(readings: tuple[Reading, ...], field: Field) -> dict[str, float]:
    """A field's value by the pod that it is said of; the empty name is the card itself."""
    return {r.pod.name if r.pod else "": r.values[field] for r in readings if field in r.values}


def test_a_page_is_in_the_exporter_s_words() -> None:
    assert render(whole_card(CARD, Use(engine=0.35, util=38), pod=ADA)) == (
        "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pci_bus_id="00000000:10:00.0",device="nvidia0",'
        'modelName="NVIDIA H200",Hostname="gpu-1",container="notebook",namespace="hub",pod="jupyter-ada"}'
        " 38\n"
        "# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time the graphics engine is active.\n"
        "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\n"
        'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a",pci_bus_id="00000000:10:00.0",device="nvidia0",'
        'modelName="NVIDIA H200",Hostname="gpu-1",container="notebook",namespace="hub",pod="jupyter-ada"}'
        " 0.350000\n"
    )


def test_nothing_is_said_of_nothing() -> None:
    assert render([]) == ""
    assert render(whole_card(CARD, Use())) == ""


def test_a_label_is_escaped() -> None:
    (reading,) = whole_card(CARD.model_copy(update={"model": 'A "B"\\\n'}), Use(util=0))
    assert 'modelName="A \\"B\\"\\\\\\n"' in render([reading])


def test_a_slice_has_its_place_and_no_utilization() -> None:
    (reading,) = sliced_card(CARD, Slice(profile="1g.18gb", instance=7, use=BUSY, pod=ADA))
    assert Field.UTIL not in reading.values
    labels = list(reading.labels())
    assert labels[5:8] == ["GPU_I_PROFILE", "GPU_I_ID", "Hostname"]
    assert reading.labels()["GPU_I_ID"] == "7"


def test_shares_get_the_card_s_profile_and_what_their_processes_do() -> None:
    readings = shared_card(CARD, BUSY, {ADA: Use(util=92, memory_mib=800), VERA: Use(util=0, memory_mib=10)})
    assert pods_of(readings, Field.ENGINE) == {"jupyter-ada": 0.9, "jupyter-vera": 0.9}
    assert pods_of(readings, Field.UTIL) == {"": 93, "jupyter-ada": 92, "jupyter-vera": 0}
    assert [r.labels().get("vgpu") for r in readings] == [None, "0", "1"]


def test_an_exporter_that_sees_no_processes_writes_zeros() -> None:
    readings = shared_card(CARD, BUSY, [ADA, VERA])
    assert pods_of(readings, Field.UTIL) == {"": 93, "jupyter-ada": 0, "jupyter-vera": 0}
    assert pods_of(readings, Field.MEMORY_USED) == {"": 1000, "jupyter-ada": 0, "jupyter-vera": 0}


def test_without_virtual_gpus_the_last_pod_passes_for_the_owner() -> None:
    readings = shared_card(CARD, BUSY, [ADA, VERA], virtual=False)
    assert pods_of(readings, Field.ENGINE) == {"jupyter-vera": 0.9}


@pytest.mark.parametrize("virtual", [False, True])
def test_a_shared_card_of_nobody_is_a_card(virtual: bool) -> None:
    readings = shared_card(CARD, BUSY, [], virtual=virtual)
    assert pods_of(readings, Field.UTIL) == {"": 93}
    assert pods_of(readings, Field.ENGINE) == {"": 0.9}


@pytest.mark.parametrize("wrong", [{"engine": 1.1}, {"engine": -0.1}, {"util": 101}, {"unknown": 1}])
def test_impossible_values_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Use.model_validate(wrong)


def job(*, honor_labels: bool) -> Job:
    target = {"namespace": "gpu-operator", "pod": "exporter-0"}
    return Job(name="dcgm", targets={"127.0.0.1:9400": target}, honor_labels=honor_labels)


@pytest.mark.parametrize(
    ("honor_labels", "expected"),
    [
        (False, {"exported_pod": "jupyter-ada", "exported_namespace": "hub", "pod": "exporter-0"}),
        (True, {"pod": "jupyter-ada", "namespace": "hub"}),
    ],
)
def test_history_has_the_labels_of_a_scrape(honor_labels: bool, expected: dict[str, str]) -> None:
    (series,) = past(whole_card(CARD, Use(util=0), pod=ADA), job(honor_labels=honor_labels), start=0, end=60)
    assert expected.items() <= series.labels.items()
    assert series.labels["instance"] == "127.0.0.1:9400"
    assert ("exported_pod" in series.labels) is not honor_labels
    assert series.samples == [(0, 0), (30, 0), (60, 0)]


def test_series_of_one_name_stand_together() -> None:
    series = past([*whole_card(CARD, BUSY, pod=ADA)], job(honor_labels=True), start=0, end=0)
    text = open_metrics([*series, *series])
    assert text.count("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n") == 1
    assert text.endswith("# EOF\n")


def test_every_target_is_scraped_with_its_own_labels() -> None:
    (scrape,) = build_config([job(honor_labels=True)], every_seconds=0.5)["scrape_configs"]
    assert scrape["honor_labels"] is True
    assert scrape["static_configs"][0]["targets"] == ["127.0.0.1:9400"]
    assert build_config([], every_seconds=0.5)["global"]["scrape_interval"] == "500ms"
