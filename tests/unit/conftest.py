"""Golden files, and tests that need a file which is not ours to keep.

Golden files are texts that are compared as a whole, and written anew with `--update-golden`.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


FOREIGN_FILES = {
    "Z2JH_DATA": "a folder with values.schema-<version>.yaml and values-<version>.yaml of the chart",
    "WORKSPACEKIND_CRD": "the file with Kubeflow's CustomResourceDefinition of WorkspaceKind",
}
"""Variables that name what other projects publish, and what each has to name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "given(variable): needs the file that this variable names")


def pytest_report_header() -> list[str]:
    missing = {name: what for name, what in FOREIGN_FILES.items() if name not in os.environ}
    return [f"without {name}, its checks are left out; set it to {what}" for name, what in missing.items()]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, as not asked for, what is to be compared with a file that is not given."""
    left_out = []
    for item in items:
        marker = item.get_closest_marker("given")
        if marker is None:
            continue
        if marker.args[0] not in FOREIGN_FILES:
            raise pytest.UsageError(
                f"{item.nodeid} needs {marker.args[0]}, which FOREIGN_FILES does not explain"
            )
        if marker.args[0] not in os.environ:
            left_out.append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file under `tests/golden`; look at the diff of a commit that changes one."""
    update = request.config.getoption("--update-golden")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing; pytest --update-golden writes it"
        assert text == path.read_text(encoding="utf-8")

    return compare
