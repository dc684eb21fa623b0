"""Whose series is whose, in both conventions of labels, and which cannot be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from services.idle_culler.facts import GpuFacts
from services.idle_culler.gpu_signal import judge_gpu
from services.idle_culler.policy import Thresholds
from services.idle_culler.queries import build_queries
from services.idle_culler.readings import Answers, read_cores, read_gpus
from services.idle_culler.signal import Value
from tests.fakes.culler import NOON

POD = ("hub", "jupyter-ada")


@dataclass
class Series:
    labels: dict[str, str]
    value: float | None


@dataclass
class Exporter:
    """Collects series, and gives the answers that Prometheus would give."""

    rows: dict[str, list[Series]] = field(default_factory=lambda: {"largest": [], "samples": [], "age": []})

    def add(
        self,
        value: float | None,
        *,
        meter: str = "engine",
        samples: float | None = 20,
        age: float = 10,
        **labels: str,
    ) -> Exporter:
        labels = {"UUID": "GPU-1", "GPU_I_ID": "", "instance": "10.0.0.1:9400", "meter": meter, **labels}
        self.rows["largest"].append(Series(labels, value))
        self.rows["samples"].append(Series(labels, samples))
        self.rows["age"].append(Series(labels, age))
        return self

    def read(self, *pods: tuple[str, str]) -> dict[Any, GpuFacts]:
        answers = Answers(at=NOON, window_seconds=600, sample_seconds=30, **self.rows)
        return read_gpus(answers, pods or (POD,))

    def judge(self, pod: tuple[str, str] = POD) -> list[Value]:
        """Judge the cards of one pod; all pods named so are the hub's."""
        ours = {
            (row.labels["namespace"], row.labels["pod"])
            for row in self.rows["largest"]
            if row.labels.get("pod", "").startswith("jupyter-")
        }
        return [judge_gpu(one, Thresholds())[0] for one in self.read(pod, *ours)[pod].gpus]


def plain(pod: str = "jupyter-ada") -> dict[str, str]:
    return {"namespace": "hub", "pod": pod}


def renamed(pod: str = "jupyter-ada") -> dict[str, str]:
    """Labels of a scrape that does not honor the exporter's own: plain ones are of the exporter."""
    return {"namespace": "monitoring", "pod": "dcgm-x", "exported_namespace": "hub", "exported_pod": pod}


@pytest.mark.parametrize("labels", [plain(), renamed()], ids=["plain", "renamed"])
def test_both_conventions_of_labels(labels: dict[str, str]) -> None:
    assert Exporter().add(0.9, **labels).judge() == [Value.BUSY]
    assert Exporter().add(0.0, **labels).judge() == [Value.IDLE]


def test_a_pod_of_the_same_name_elsewhere_is_another_one() -> None:
    facts = Exporter().add(0.9, namespace="other", pod="jupyter-ada").read()[POD]
    assert facts.gpus == ()
    assert facts.labels_broken


def test_readings_that_name_no_pod_of_a_server_are_broken_not_idle() -> None:
    facts = Exporter().add(0.0, namespace="monitoring", pod="dcgm-x").read()[POD]
    assert (facts.gpus, facts.labels_broken) == ((), True)
    assert not Exporter().read()[POD].labels_broken


def test_the_two_meters_of_a_card_are_both_kept() -> None:
    exporter = Exporter().add(0.0, **plain()).add(0.99, meter="utilization", **plain())
    (reading,) = exporter.read()[POD].gpus
    assert (reading.engine, reading.utilization) == (0.0, 0.99)
    assert exporter.judge() == [Value.UNKNOWN]


def test_several_cards_and_slices_have_a_reading_each() -> None:
    exporter = Exporter()
    for number in "12":
        exporter.add(0.0, **plain(), UUID=f"GPU-{number}")
    exporter.add(0.4, **plain(), UUID="GPU-2", GPU_I_ID="7")
    assert [(one.uuid, one.slice) for one in exporter.read()[POD].gpus] == [
        ("GPU-1", ""),
        ("GPU-2", ""),
        ("GPU-2", "7"),
    ]
    assert exporter.judge() == [Value.IDLE, Value.IDLE, Value.BUSY]


def test_samples_before_and_after_a_restart_of_the_exporter_add_up() -> None:
    exporter = Exporter().add(0.0, samples=12, age=400, **plain())
    exporter.add(0.0, samples=8, age=5, instance="10.0.0.9:9400", **plain())
    (reading,) = exporter.read()[POD].gpus
    assert (reading.coverage, reading.age_seconds) == (1.0, 5)


def test_the_samples_of_two_exporters_that_both_go_on_do_not_add_up() -> None:
    """Two scrapes of one exporter by different names, each with the same gap."""
    exporter = Exporter().add(0.0, samples=10, age=5, **plain())
    exporter.add(0.0, samples=9, age=20, instance="dcgm-exporter:9400", **plain())
    (reading,) = exporter.read()[POD].gpus
    assert (reading.coverage, reading.age_seconds) == (0.5, 5)


def test_samples_that_are_partly_no_numbers_show_work_but_no_rest() -> None:
    """The largest value leaves NaN out, and so does the count: Prometheus is asked so that it does not."""
    assert Exporter().add(0.0, samples=None, **plain()).judge() == [Value.UNKNOWN]
    assert Exporter().add(0.6, samples=None, **plain()).judge() == [Value.BUSY]
    assert "0 * sum_over_time" in build_queries(600).samples


def test_the_most_complete_series_says_how_many_samples_there_are() -> None:
    exporter = Exporter().add(0.0, samples=40, **plain()).add(0.0, samples=20, UUID="GPU-2", **plain("other"))
    facts = exporter.read(POD, ("hub", "other"))
    assert facts[POD].gpus[0].coverage == 1.0
    assert facts["hub", "other"].gpus[0].coverage == 0.5


def shared(card: float, *pods: float) -> Exporter:
    """A card that several pods share: its engine is copied to all, its utilization told apart."""
    exporter = Exporter().add(card, meter="utilization")
    for number, use in enumerate(pods):
        exporter.add(card, **plain(f"jupyter-{number}"))
        exporter.add(use, meter="utilization", **plain(f"jupyter-{number}"))
    return exporter


def test_a_shared_card_is_told_apart_by_pod() -> None:
    exporter = shared(0.93, 0.92, 0.0)
    assert exporter.judge(("hub", "jupyter-0")) == [Value.BUSY]
    assert exporter.judge(("hub", "jupyter-1")) == [Value.IDLE]


def test_a_working_card_whose_pods_all_rest_is_not_known() -> None:
    exporter = shared(0.95, 0.0, 0.0)
    for pod in ("jupyter-0", "jupyter-1"):
        assert exporter.judge(("hub", pod)) == [Value.UNKNOWN]


def test_a_shared_card_that_rests_is_idle_for_all() -> None:
    exporter = shared(0.0, 0.0, 0.0)
    assert exporter.judge(("hub", "jupyter-0")) == [Value.IDLE]


@pytest.mark.parametrize(("use", "value"), [(0.9, Value.IDLE), (0.0, Value.UNKNOWN)])
def test_where_labels_are_honored_the_card_seems_to_belong_to_the_exporter(use: float, value: Value) -> None:
    exporter = Exporter().add(0.9, meter="utilization", namespace="gpu-operator", pod="dcgm-x")
    for pod, part in (("jupyter-0", use), ("jupyter-1", 0.0)):
        exporter.add(0.9, **plain(pod)).add(part, meter="utilization", **plain(pod))
    facts = exporter.read(("hub", "jupyter-0"), ("hub", "jupyter-1"))
    assert judge_gpu(facts["hub", "jupyter-1"].gpus[0], Thresholds())[0] is value


def test_a_copied_reading_without_a_share_of_its_own_is_the_whole_card() -> None:
    exporter = Exporter().add(0.9, **plain("jupyter-0")).add(0.9, **plain("jupyter-1"))
    assert exporter.judge(("hub", "jupyter-1")) == [Value.BUSY]


def test_a_value_that_is_no_number_is_no_reading() -> None:
    assert Exporter().add(None, **plain()).judge() == [Value.UNKNOWN]


def test_a_pod_that_asked_for_no_gpu_is_told_of_only_where_it_has_one() -> None:
    exporter = Exporter().add(0.9, **plain("jupyter-bob"))
    answers = Answers(at=NOON, window_seconds=600, sample_seconds=30, **exporter.rows)
    found = read_gpus(answers, [POD], [("hub", "jupyter-bob"), ("hub", "jupyter-eve")])
    assert found.keys() == {POD, ("hub", "jupyter-bob")}
    assert found["hub", "jupyter-bob"].gpus[0].engine == 0.9


def test_processors() -> None:
    cores = [Series(plain(), 0.7), Series(plain("jupyter-bob"), None)]
    found = read_cores(cores, [Series(plain(), 0.9)], at=NOON, window_seconds=600)
    assert (found[POD].cores, found[POD].coverage) == (0.7, 0.9)
    assert found["hub", "jupyter-bob"].cores is None
