"""Tokens are asked about once an hour, and not kept as they are."""

from __future__ import annotations

import pytest

from services.idle_culler import callers
from services.idle_culler.callers import LARGEST, SECONDS, Callers


def test_a_token_is_known_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(callers.time, "monotonic", lambda: now[0])
    known = Callers()
    known.add("secret", {"name": "ada"})
    assert known.find("secret") == {"name": "ada"}
    assert known.find("another") is None
    now[0] += SECONDS
    assert known.find("secret") is None


def test_tokens_are_not_kept_as_they_are_and_the_oldest_go() -> None:
    known = Callers()
    for number in range(LARGEST + 1):
        known.add(f"token-{number}", {"name": "ada"})
    assert known.find("token-0") is None
    assert known.find(f"token-{LARGEST}") is not None
    assert "token-" not in repr(vars(known))
