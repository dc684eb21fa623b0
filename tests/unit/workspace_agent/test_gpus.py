"""What can be said of GPUs from what NVML tells inside a container."""

from __future__ import annotations

from typing import Any

import pytest

from hub_ext.protocol import Attribution
from services.workspace_agent.gpus import Device, GpuReading, attribute, judge_self_test, merge

TRUSTED, GIB = Attribution.TRUSTED, 2**30


def device(holders: dict[int, int | None] | None, **fields: Any) -> Device:
    """A card whose holders are all in the container."""
    return Device(**{"uuid": "GPU-a", "holders": holders, "local": frozenset(holders or ()), **fields})


def only(reading: GpuReading) -> tuple[float | None, int | None]:
    (gpu,) = reading.gpus
    return gpu.use, gpu.memory_bytes


def test_a_computing_process() -> None:
    found = attribute([device({7: GIB}, use={7: 0.94}, peak=0.99)], TRUSTED)
    assert only(found) == (0.99, GIB)
    assert (found.use, found.memory_bytes) == ({7: 0.94}, {7: GIB})


def test_memory_that_is_only_held_is_no_use() -> None:
    assert only(attribute([device({7: 70 * GIB}, use={}, peak=0.0)], TRUSTED)) == (0.0, 70 * GIB)


def test_an_unused_gpu() -> None:
    assert only(attribute([device({}, use={}, peak=0.0)], TRUSTED)) == (0.0, 0)


def test_the_card_s_use_by_others_is_not_ours() -> None:
    found = attribute([device({7: GIB}, use={4711: 0.97}, peak=0.98)], TRUSTED)
    assert only(found) == (0.0, GIB)
    nobody = attribute([device({}, use={4711: 0.97}, peak=0.98)], TRUSTED)
    assert only(nobody) == (0.0, 0)


def test_our_part_of_a_shared_card() -> None:
    found = attribute([device({7: GIB, 8: GIB}, use={7: 0.2, 8: 0.1, 4711: 0.6}, peak=0.95)], TRUSTED)
    assert found.gpus[0].use == pytest.approx(0.3)


def test_a_stranger_with_one_of_our_numbers_counts_as_busy() -> None:
    assert only(attribute([device({7: GIB}, use={7: 0.97})], TRUSTED))[0] == 0.97


def test_a_process_that_ended_in_the_window_counts() -> None:
    found = attribute([device({}, former=frozenset({7}), use={7: 0.8}, peak=0.99)], TRUSTED)
    assert only(found) == (0.99, 0)


def test_a_slice_tells_its_holders_and_no_use() -> None:
    assert only(attribute([device({7: GIB}, uuid="MIG-a")], TRUSTED)) == (None, GIB)


@pytest.mark.parametrize("attribution", [a for a in Attribution if a is not TRUSTED])
def test_nothing_is_said_without_trust(attribution: Attribution) -> None:
    found = attribute([device({7: GIB}, use={7: 0.9}, peak=0.9)], attribution)
    assert only(found) == (None, None)
    assert not found.memory_bytes


def test_a_holder_that_is_not_here_takes_the_trust_away_for_this_reading() -> None:
    found = attribute([device({7: GIB, 4711: GIB}, local=frozenset({7}), use={}, peak=0.0)], TRUSTED)
    assert only(found) == (None, None)
    assert not found.complete


def test_unknown_memory_is_not_zero() -> None:
    assert only(attribute([device({7: None}, use={}, peak=0.0)], TRUSTED)) == (0.0, None)
    assert only(attribute([device(None)], TRUSTED)) == (None, None)


def test_a_window_of_several_readings_keeps_its_largest() -> None:
    busy = attribute([device({7: GIB}, use={7: 0.5}, peak=0.6)], TRUSTED)
    idle = attribute([device({7: 2 * GIB}, use={}, peak=0.0)], TRUSTED)
    found = merge(busy, idle)
    assert only(found) == (0.6, 2 * GIB)
    assert found.use == {7: 0.5}
    assert merge(None, idle) is idle


def test_a_window_with_a_gap_is_not_measured() -> None:
    idle = attribute([device({7: GIB}, use={}, peak=0.0)], TRUSTED)
    gap = GpuReading(complete=False)
    assert only(merge(gap, idle))[0] is None
    assert not merge(gap, idle).complete
    assert merge(idle, gap).gpus == ()


@pytest.mark.parametrize(
    ("holders", "attribution", "said"),
    [
        ({42: GIB}, Attribution.TRUSTED, "driver 580.1"),
        ({9000: GIB}, Attribution.UNTRUSTED, "other numbers: [9000]"),
        ({}, Attribution.UNTRUSTED, "no process at all"),
        (None, Attribution.UNTRUSTED, "no process at all"),
    ],
)
def test_self_test(holders: dict[int, int | None] | None, attribution: Attribution, said: str) -> None:
    found = judge_self_test(42, [device({}), device(holders, uuid="GPU-b")], driver="580.1")
    assert found.attribution is attribution
    assert said in found.detail
