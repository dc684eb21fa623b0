"""What a pod takes, and which pods count."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub_ext.errors import QuantityError
from hub_ext.quota.arithmetic import NOTHING, Resources, counts, pod_request, read_amount, total

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

NAMES = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g.18gb"])
AMOUNTS = st.dictionaries(NAMES, st.integers(min_value=0, max_value=10**6)).map(Resources)


def container(name: str, *, restart: str | None = None, **requests: str) -> dict[str, Any]:
    quantities = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in requests.items()}
    made: dict[str, Any] = {"name": name, "resources": {"requests": quantities}}
    return made | ({"restartPolicy": restart} if restart else {})


@pytest.mark.parametrize(
    ("name", "quantity", "amount"),
    [
        ("cpu", "500m", 500),
        ("limits.cpu", "2", 2000),
        ("cpu", "0.0001", 1),
        ("memory", "1Gi", 1024**3),
        ("memory", "400m", 1),
        ("nvidia.com/gpu", "3000m", 3),
        ("nvidia.com/gpu", 1, 1),
        ("pods", "1k", 1000),
    ],
)
def test_amounts_are_read_in_the_unit_of_their_resource_and_rounded_up(
    name: str, quantity: str | int, amount: int
) -> None:
    assert read_amount(name, quantity) == amount


@pytest.mark.parametrize("quantity", ["one", "", "16GB", "1 Gi"])
def test_what_is_no_quantity_is_refused(quantity: str) -> None:
    with pytest.raises(QuantityError):
        read_amount("memory", quantity)


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_sums_obey_the_laws_of_sums(a: Resources, b: Resources, c: Resources) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == total([a, b, c])
    assert a + NOTHING == a
    assert (a + b) - b == a
    assert hash(a + b) == hash(b + a)


@given(AMOUNTS, AMOUNTS)
def test_a_peak_is_the_least_that_covers_both(a: Resources, b: Resources) -> None:
    peak = a.peak(b)
    assert all(peak[name] == max(a[name], b[name]) for name in {*a, *b})
    assert a.peak(a) == a


def test_zero_is_the_same_as_absent() -> None:
    assert Resources({"nvidia.com/gpu": 0}) == NOTHING
    assert not Resources.read({"nvidia.com/gpu": "0"})
    assert "nvidia.com/gpu" not in Resources.read({"nvidia.com/gpu": "0"})


def test_containers_add_up_and_name_who_asks() -> None:
    request = pod_request({"containers": [container("notebook", gpu="1"), container("monitor", gpu="1")]})
    assert request.requests["nvidia.com/gpu"] == 2
    assert request.takers("nvidia.com/gpu") == ("notebook", "monitor")


def test_init_containers_lift_the_total_only_where_they_need_more() -> None:
    spec = {
        "initContainers": [container("prepare", cpu="4", gpu="1"), container("fetch", cpu="1", memory="1Gi")],
        "containers": [container("notebook", cpu="2", gpu="1"), container("proxy", cpu="500m", gpu="1")],
    }
    assert pod_request(spec).requests == Resources({"cpu": 4000, "memory": 1024**3, "nvidia.com/gpu": 2})


def test_a_sidecar_counts_as_long_as_the_pod_runs_and_beside_later_init_containers() -> None:
    spec = {
        "initContainers": [
            container("early", cpu="3"),
            container("log", restart="Always", cpu="1"),
            container("late", cpu="3"),
        ],
        "containers": [container("notebook", cpu="2")],
    }
    assert pod_request(spec).requests["cpu"] == 4000
    assert pod_request({**spec, "initContainers": spec["initContainers"][:2]}).requests["cpu"] == 3000


def test_pod_level_requests_and_overhead() -> None:
    spec = {
        "containers": [container("notebook", cpu="1", gpu="1")],
        "resources": {"requests": {"cpu": "4", "memory": "8Gi"}},
        "overhead": {"memory": "128Mi"},
    }
    expected = Resources({"cpu": 4000, "memory": 8 * 1024**3 + 128 * 1024**2, "nvidia.com/gpu": 1})
    assert pod_request(spec).requests == expected


def test_a_limit_stands_in_for_a_request_that_is_not_written() -> None:
    spec = {"containers": [{"name": "n", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}}}]}
    assert pod_request(spec).requests == Resources({"cpu": 1000, "nvidia.com/gpu": 2})


def test_the_input_is_not_changed_and_an_empty_pod_takes_nothing() -> None:
    assert pod_request({}).requests == NOTHING
    assert pod_request({"containers": None, "initContainers": None}).requests == NOTHING


def gpu_pod(phase: str, gpus: int, *, deleted: str | None = None, grace: int | None = None) -> dict[str, Any]:
    metadata = {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace} if deleted else {}
    return {
        "metadata": metadata,
        "spec": {"containers": [container("n", gpu=str(gpus))]},
        "status": {"phase": phase},
    }


def test_what_counts_against_a_quota() -> None:
    """Finished and long overdue pods do not; waiting pods and those within their grace period do."""
    pods = [
        gpu_pod("Running", 1),
        gpu_pod("Succeeded", 1),
        gpu_pod("Failed", 2),
        gpu_pod("Pending", 1),
        gpu_pod("Running", 1, deleted="2026-11-30T11:59:50Z", grace=30),
        gpu_pod("Running", 1, deleted="2026-11-30T11:00:00Z", grace=30),
    ]
    used = total(pod_request(pod["spec"]).requests for pod in pods if counts(pod, NOW))
    assert used["nvidia.com/gpu"] == 3


@pytest.mark.parametrize(("second", "counted"), [(20, True), (21, False)])
def test_the_grace_period_ends_after_its_last_second(second: int, counted: bool) -> None:
    pod = gpu_pod("Running", 1, deleted="2026-11-30T11:59:50Z", grace=30)
    assert counts(pod, NOW.replace(second=second)) is counted


def test_fractions_stay_exact() -> None:
    third = Resources({"gpuEquivalents": Fraction(1, 3)})
    assert total([third] * 3) == Resources({"gpuEquivalents": 1})
