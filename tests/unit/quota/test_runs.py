"""Runs count from the moment that they are admitted, and each of their pods once."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.state import ClusterState
from hub_ext.names import ANNOTATION_USER, LABEL_JOB, LABEL_POOL, LABEL_TEAM
from hub_ext.quota.arithmetic import GPU_EQUIVALENTS
from hub_ext.quota.demand import Weights
from hub_ext.quota.usage import Owner

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"
ADA = Owner(user="ada", team="nlp")


@pytest.fixture
def state() -> ClusterState:
    return ClusterState(Weights(by_pool={("big", GPU): Fraction(2)}, by_resource={}))


def template(gpus: int, *, run: str = "train-1") -> dict[str, Any]:
    labels = {LABEL_JOB: run, LABEL_TEAM: "nlp", LABEL_POOL: "big"} if run else {}
    return {
        "metadata": {"labels": labels, "annotations": {ANNOTATION_USER: "ada"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {GPU: str(gpus)}}}]},
    }


def workload(*pod_sets: tuple[int, int], run: str = "train-1", **conditions: str) -> dict[str, Any]:
    """Each pod set is a number of pods and the GPUs of each."""
    return {
        "metadata": {"name": "w", "namespace": "runs", "uid": "w", "ownerReferences": [{"uid": "job"}]},
        "spec": {"podSets": [{"count": n, "template": template(gpus, run=run)} for n, gpus in pod_sets]},
        "status": {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]},
    }


def pod(name: str, gpus: int, *, phase: str = "Running") -> dict[str, Any]:
    made = template(gpus)
    made["metadata"] |= {
        "name": name,
        "namespace": "runs",
        "uid": name,
        "creationTimestamp": "2026-11-30T11:00:00Z",
    }
    return {**made, "status": {"phase": phase}}


def gpus(state: ClusterState) -> Any:
    return state.observed.usage(ADA).user[GPU]


def test_a_run_counts_from_its_admission_to_its_end(state: ClusterState) -> None:
    state.put(Kind.WORKLOADS, workload((1, 1), (2, 4), QuotaReserved="False"), NOW)
    assert gpus(state) == 0, "it waits for its turn"
    state.put(Kind.WORKLOADS, workload((1, 1), (2, 4), QuotaReserved="True"), NOW)
    usage = state.observed.usage(ADA)
    assert (usage.user[GPU], usage.team[GPU], usage.user["servers"]) == (9, 9, 0)
    assert usage.user[GPU_EQUIVALENTS] == 18, "by the weight of its pool"
    state.put(Kind.WORKLOADS, workload((1, 1), (2, 4), QuotaReserved="True", Finished="True"), NOW)
    assert gpus(state) == 0


def test_what_its_pods_show_counts_once(state: ClusterState) -> None:
    state.put(Kind.PODS, pod("a", 4), NOW)
    assert gpus(state) == 4, "pods may be seen first"
    state.put(Kind.WORKLOADS, workload((2, 4), QuotaReserved="True"), NOW)
    assert gpus(state) == 8
    state.put(Kind.PODS, pod("b", 4), NOW)
    assert gpus(state) == 8
    state.drop(Kind.PODS, "runs/b")
    assert gpus(state) == 8, "a lost pod is made again"


def test_a_pod_that_has_finished_takes_nothing_and_is_not_missing(state: ClusterState) -> None:
    state.put(Kind.WORKLOADS, workload((2, 4), QuotaReserved="True"), NOW)
    state.put(Kind.PODS, pod("a", 4, phase="Succeeded"), NOW)
    assert gpus(state) == 4


def test_a_workload_that_is_gone_counts_no_longer(state: ClusterState) -> None:
    key = state.put(Kind.WORKLOADS, workload((2, 4), QuotaReserved="True"), NOW)
    state.drop(Kind.WORKLOADS, key)
    assert gpus(state) == 0
    state.put(Kind.WORKLOADS, workload((2, 4), QuotaReserved="True"), NOW)
    state.seen(Kind.WORKLOADS, "runs")
    state.lose(Kind.WORKLOADS, "runs")
    assert gpus(state) == 0


def test_what_is_no_run_of_ours_is_left_to_its_pods(state: ClusterState) -> None:
    state.put(Kind.WORKLOADS, workload((1, 4), run="", QuotaReserved="True"), NOW)
    assert gpus(state) == 0
