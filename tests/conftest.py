"""Tests that compare with what other projects publish: they need a file that is not ours to keep.

`@pytest.mark.given("Z2JH_DATA")` leaves a test out where that variable names none, and says so.
`-m attack` chooses the tests that `tests/attacks.py` names.

Tests of properties draw the same examples in every run, so that nobody's change fails by what was drawn;
`HYPOTHESIS_PROFILE=search` draws others each time, ten times as many.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.attacks import ATTACKS

FOREIGN_FILES = {
    "Z2JH_DATA": "a folder with values.schema-<version>.yaml and values-<version>.yaml of the chart",
    "Z2JH_CHART": "the chart of Zero to JupyterHub, a folder or an archive",
    "WORKSPACEKIND_CRD": "the file with Kubeflow's CustomResourceDefinition of WorkspaceKind",
}
"""Variables that name what other projects publish, and what each has to name."""

FOLDER = Path(__file__).parent
LEFT_OUT = pytest.StashKey[dict[str, int]]()

# How long an example or its making takes says how busy the machine is, and nothing else.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _PATIENT, derandomize=True, database=None)
settings.register_profile("search", _PATIENT, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = {}
    config.addinivalue_line("markers", "given(variable): needs the file that this variable names")
    config.addinivalue_line("markers", "attack(kind): an attack of that kind; see tests/attacks.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, as not asked for, what is to be compared with a file that is not given."""
    mark_attacks(items)
    left_out = []
    for item in items:
        marker = item.get_closest_marker("given")
        if marker is None:
            continue
        variable = marker.args[0]
        if variable not in FOREIGN_FILES:
            raise pytest.UsageError(f"{item.nodeid} needs {variable}, which FOREIGN_FILES does not explain")
        if variable not in os.environ:
            left_out.append(item)
            counts = config.stash[LEFT_OUT]
            counts[variable] = counts.get(variable, 0) + 1
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def mark_attacks(items: list[pytest.Item]) -> None:
    """Put a mark on each test that `tests/attacks.py` names."""
    kinds: dict[str, list[str]] = {}
    for kind, attack in ATTACKS.items():
        for test in attack.tests:
            kinds.setdefault(test, []).append(kind)
    for item in items:
        file = item.path.relative_to(FOLDER) if item.path.is_relative_to(FOLDER) else item.path
        for kind in kinds.get(f"{file.as_posix()}::{getattr(item, 'originalname', item.name)}", ()):
            item.add_marker(pytest.mark.attack(kind))


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say what was left out and how to have it."""
    return [
        f"{count} tests left out; to run them, set {variable} to {FOREIGN_FILES[variable]}"
        for variable, count in config.stash[LEFT_OUT].items()
    ]
