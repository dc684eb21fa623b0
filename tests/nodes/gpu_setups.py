"""The set-ups of `gpu_setups.yaml`, for the tests that compare them with what NVIDIA's programs say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.devcluster.gpu.setup import GpuSetup

FILE = Path(__file__).with_name("gpu_setups.yaml")
PREFIX = "nvidia.com/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One set-up and what comes of it."""

    name: str
    setup: GpuSetup
    labels: dict[str, str]
    """With their full names."""
    offers: dict[str, int]


def _read(name: str, entry: dict[str, Any]) -> Expected:
    return Expected(
        name=name,
        setup=GpuSetup.model_validate(entry["gpus"]),
        labels={PREFIX + label: value for label, value in entry["labels"].items()},
        offers=entry["offers"],
    )


SETUPS = {name: _read(name, entry) for name, entry in yaml.safe_load(FILE.read_text())["setups"].items()}
