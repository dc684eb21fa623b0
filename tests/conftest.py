"""Tests that compare with what other projects publish: they need a file that is not ours to keep.

`@pytest.mark.given("Z2JH_DATA")` leaves a test out where that variable names none, and says so.
"""

import os

import pytest

FOREIGN_FILES = {
    "Z2JH_DATA": "a folder with values.schema-<version>.yaml and values-<version>.yaml of the chart",
    "WORKSPACEKIND_CRD": "the file with Kubeflow's CustomResourceDefinition of WorkspaceKind",
}
"""Variables that name what other projects publish, and what each has to name."""

LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = {}
    config.addinivalue_line("markers", "given(variable): needs the file that this variable names")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, as not asked for, what is to be compared with a file that is not given."""
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


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say what was left out and how to have it."""
    return [
        f"{count} tests left out; to run them, set {variable} to {FOREIGN_FILES[variable]}"
        for variable, count in config.stash[LEFT_OUT].items()
    ]
