"""What was meant by a misspelt word."""

from __future__ import annotations

import pytest

from hub_ext.spelling import did_you_mean, known_here, meant

KEYS = ["idleTimeout", "maxDuration", "memory", "gpu"]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("idle_timeout", "idleTimeout"),
        ("IDLE-TIMEOUT", "idleTimeout"),
        ("idelTimeout", "idleTimeout"),
        ("memroy", "memory"),
        ("maxDurations", "maxDuration"),
        ("profile", None),
        ("", None),
        ("---", None),
    ],
)
def test_what_was_meant(word: str, found: str | None) -> None:
    assert meant(word, KEYS) == found


def test_the_same_word_goes_before_one_that_is_more_alike() -> None:
    assert meant("GPU-FULL", ["GPU-FULLS", "gpu-full"]) == "gpu-full"


def test_how_alike_two_words_have_to_be_can_be_said() -> None:
    assert meant("memo", ["memory"]) == "memory"
    assert meant("memo", ["memory"], alike=0.9) is None


def test_remedies() -> None:
    assert did_you_mean("memroy", iter(KEYS)) == "Did you mean memory?"
    assert did_you_mean("profile", KEYS) == ""
    assert did_you_mean("profile", KEYS, known_here(KEYS)).startswith("Known here: gpu, idle")
    assert known_here([]) == ""
