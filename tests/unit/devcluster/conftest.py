"""A cache folder of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devcluster.cache import ROOT_VARIABLE


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(ROOT_VARIABLE, str(folder))
    return folder
