"""Every kind of attack is made by tests that exist, and not by unit tests alone."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.attacks import ATTACKS

TESTS = Path(__file__).parents[1]
REAL = ("hub/", "control/", "nodes/", "browser/")
"""Tiers with a real hub or a real API server."""


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(
        one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@pytest.mark.parametrize("test", sorted({test for attack in ATTACKS.values() for test in attack.tests}))
def test_each_test_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert name in functions(file), f"tests/attacks.py names {test}: say there what became of it"


@pytest.mark.parametrize("kind", ATTACKS)
def test_each_kind_is_tried_on_something_real(kind: str) -> None:
    assert [test for test in ATTACKS[kind].tests if test.startswith(REAL)]


def test_there_are_all_kinds() -> None:
    assert len(ATTACKS) == 13
