"""Which files may be run as jobs, and what the command's answer means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.workspace_agent.jobs import JobError, find_file, page_of, problem_of


def test_files_below_the_root_are_found(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "train.ipynb").touch()
    (tmp_path / "link.ipynb").symlink_to("a b/train.ipynb")
    for path in ("a b/train.ipynb", "/a b/train.ipynb", "link.ipynb"):
        assert find_file(str(tmp_path), path) == tmp_path / "a b" / "train.ipynb"


@pytest.mark.parametrize("path", ["", ".", "..", "../x", "/etc/passwd", "out/passwd", "missing.ipynb"])
def test_nothing_else_is(tmp_path: Path, path: str) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to("/etc")
    (tmp_path / "x").touch()
    with pytest.raises(JobError, match="is no file of this workspace"):
        find_file(str(tmp_path / "root"), path)


def test_the_command_names_the_page() -> None:
    assert page_of(json.dumps({"result": {"url": "/services/job-handoff/new?path=a"}})) is not None


@pytest.mark.parametrize(
    "said",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"result": null}',
        '{"result": {"url": "javascript:alert(1)"}}',
        '{"result": {"url": "//elsewhere.example"}}',
    ],
)
def test_no_page_is_no_page(said: str) -> None:
    assert page_of(said) is None


@pytest.mark.parametrize(
    ("said", "complaint", "problem"),
    [
        ('{"findings": [{"message": "too large"}, {"message": "no GPU"}]}', "", "too large; no GPU"),
        ('{"error": "the service does not answer", "findings": []}', "", "the service does not answer"),
        ("", "Traceback\n  …\nModuleNotFoundError: no module\n", "ModuleNotFoundError: no module"),
        ("", "", "a.ipynb could not be prepared"),
        ('{"findings": "?"}', "", "a.ipynb could not be prepared"),
    ],
)
def test_why_there_is_no_page(said: str, complaint: str, problem: str) -> None:
    assert problem_of(said, complaint, "a.ipynb") == problem
