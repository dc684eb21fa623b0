"""When to report next."""

from __future__ import annotations

import pytest

from services.workspace_agent.pace import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    SPREAD,
    seconds_until_next,
)


@pytest.mark.parametrize(
    ("asked", "failures", "seconds"),
    [
        (30, 0, 30),
        (30, 1, 60),
        (30, 3, 240),
        (30, 5, LONGEST_SECONDS),
        (30, 10_000, LONGEST_SECONDS),
        (0, 0, SHORTEST_SECONDS),
        (1e9, 0, LONGEST_SECONDS),
    ],
)
def test_reports_slow_down_while_they_fail(asked: float, failures: int, seconds: float) -> None:
    assert seconds_until_next(asked, failures, chance=0.5) == seconds


def test_workspaces_drift_apart() -> None:
    assert seconds_until_next(30, 0, chance=0) == pytest.approx(30 * (1 - SPREAD))
    assert seconds_until_next(30, 0, chance=1) == pytest.approx(30 * (1 + SPREAD))
