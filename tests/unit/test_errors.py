"""The tree of errors."""

import re
from pathlib import Path

import pytest

from hub_ext import errors
from hub_ext.errors import (
    BadValueError,
    CatalogError,
    Finding,
    HubError,
    KubeError,
    PrometheusError,
    RemoteError,
    Severity,
    WorkspaceError,
)

HUB_EXT = Path(errors.__file__).parent
ROOT = r"Workspace|Catalog|BadValue|Quantity|NameRule|Selection|Remote|Hub|Kube|Prometheus"


def test_every_error_is_drawn_in_the_tree() -> None:
    defined = {
        name
        for path in HUB_EXT.rglob("*.py")
        for name in re.findall(
            rf"^class ([A-Z]\w+)\((?:{ROOT})Error\b", path.read_text("utf-8"), re.MULTILINE
        )
    }
    assert {"CatalogError", "QuantityError", "KubeError"} <= defined
    drawn = set(re.findall(r"\b[A-Z]\w*Error\b", errors.__doc__ or ""))
    assert defined <= drawn


def test_a_bad_value_is_a_value_error_with_a_code_and_a_remedy() -> None:
    error = BadValueError("no", code="bad-thing", help="Write yes.")
    assert isinstance(error, ValueError)
    assert isinstance(error, WorkspaceError)
    assert (str(error), error.code, error.help) == ("no", "bad-thing", "Write yes.")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (HubError("no answer"), "JupyterHub: no answer"),
        (
            KubeError("is gone", kind="Pod", namespace="n", name="p", status=404),
            "Kubernetes: is gone (status 404)",
        ),
        (PrometheusError("bad query", status=400), "Prometheus: bad query (status 400)"),
    ],
)
def test_a_failure_elsewhere_says_where(error: RemoteError, text: str) -> None:
    assert str(error) == text


def test_a_catalog_error_tells_every_finding() -> None:
    wrong = Finding(severity=Severity.ERROR, code="a", message="m", path="x.y", file="f", line=3, help="h")
    note = Finding(severity=Severity.NOTE, code="b", message="n")
    error = CatalogError([wrong, note])
    assert error.errors == (wrong,)
    assert str(error) == "the catalog has 1 error\nf:3: error[a] at x.y: m\n    h\nnote[b]: n"
    assert list(wrong.as_dict()) == ["severity", "code", "path", "file", "line", "message", "help"]
