"""What an admin may write, and what is told at once instead of at nine in the morning."""

from __future__ import annotations

from datetime import time
from typing import Any

import pytest
from pydantic import ValidationError

from services.prepuller.settings import Settings
from tests.unit.prepuller import world


def test_a_time_of_day_is_read() -> None:
    (seats,) = world.settings(schedule=[{"profile": "p", "at": "09:05", "seats": 3}]).schedule
    assert seats.at == time(9, 5)


@pytest.mark.parametrize("at", [540, 9.5, "25:00", "9:00", "09:60", "nine", None])
def test_what_is_no_time_of_day_is_refused(at: Any) -> None:
    """Without quotes YAML 1.1 makes 540 of 09:00, which would be nine minutes past midnight."""
    with pytest.raises(ValidationError, match="time of day"):
        world.settings(schedule=[{"profile": "p", "at": at, "seats": 3}])


def test_docker_hub_has_one_limit_whatever_it_is_called() -> None:
    given = world.settings(limits={"registries": {"index.docker.io": 2, "localhost:5000": 3}})
    assert (given.limits.of_registry("docker.io"), given.limits.of_registry("localhost:5000")) == (2, 3)


@pytest.mark.parametrize(
    "values",
    [
        {"limits": {"total": 0}},
        {"limits": {"registries": {"docker.io": 0}}},
        {"limits": {"perNode": 2}},
        {"diskShare": 1.5},
        {"diskShare": 0},
        {"schedule": [{"profile": "p", "at": "09:00", "seats": 3, "zone": "Mars/Base"}]},
        {"pods": {"annotations": {"no good": "x"}}},
        {"pods": {"tool": "UPPER:1"}},
        {"pods": {"runAsUser": 0}},
        {"pods": {"environment": {"NVIDIA_VISIBLE_DEVICES": "all"}}},
        {"limits": {"registries": {"https://docker.io": 2}}},
        {"limits": {"registries": {"ghcr.io/org": 2}}},
        {"limits": {"registries": {"": 2}}},
        {"limits": {"total": -1}},
        {"limits": {"timeout": "-5m"}},
        {"release": {"keepPrevious": -1}},
        {"shared": {"tolerations": [{"operator": "Equal"}]}},
        {"shared": {"nodeSelector": {"a": "no good"}}},
        {"release": {"after": "-1h"}},
        {"extraImages": [{"ref": ""}]},
    ],
    ids=lambda values: str(values)[:50],
)
def test_other_mistakes_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(values)
