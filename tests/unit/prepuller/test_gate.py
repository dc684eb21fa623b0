"""The release gate: how much is enough, what is not waited for, and what will never come."""

from __future__ import annotations

from typing import Any

import pytest

from services.prepuller.gate import Outcome, Question, judge

IMAGE = "registry.example.org/torch@sha256:" + "a" * 64


def image(warm: int, nodes: int, **more: Any) -> dict[str, Any]:
    return {
        "image": IMAGE,
        "pool": "gpu",
        "profiles": ["gpu-full@3"],
        "required": True,
        "warm": warm,
        "nodes": nodes,
        "away": 0,
        "blocked": 0,
        **more,
    }


def problem(reason: str, subject: str = IMAGE) -> dict[str, Any]:
    return {"subject": subject, "reason": reason, "node": "n5", "text": "", "detail": ""}


def ask(*images: dict[str, Any], problems: tuple[dict[str, Any], ...] = (), **question: Any) -> Any:
    status = {"catalog": "the-one", "images": list(images), "problems": list(problems)}
    return judge(status, Question(**{"least": 0.9, **question}))


@pytest.mark.parametrize(
    ("warm", "nodes", "least", "outcome"),
    [
        (9, 10, 0.9, Outcome.READY),
        (8, 10, 0.9, Outcome.WAITING),
        (2, 3, 0.9, Outcome.WAITING),
        (3, 3, 1.0, Outcome.READY),
        (0, 10, 0.0, Outcome.READY),
        (63, 70, 0.9, Outcome.READY),
        (0, 0, 0.9, Outcome.WAITING),
    ],
)
def test_shares(warm: int, nodes: int, least: float, outcome: Outcome) -> None:
    assert ask(image(warm, nodes), least=least).outcome is outcome


def test_the_coldest_image_counts() -> None:
    verdict = ask(image(10, 10), image(3, 10, image="registry.example.org/flow:1"))
    assert verdict.outcome is Outcome.WAITING
    assert verdict.lines == ("registry.example.org/flow:1 in gpu: warm on 3 of 10 nodes",)


def test_a_full_or_broken_node_is_named_and_not_waited_for() -> None:
    verdict = ask(image(4, 4, away=1), problems=(problem("no-room", "n5"),))
    assert verdict.outcome is Outcome.READY
    assert verdict.warnings[0] == "1 nodes of gpu take nothing now and were not counted"
    assert "n5: no-room on n5" in verdict.warnings[1]


def test_what_will_never_come_is_told_at_once_with_its_reason() -> None:
    verdict = ask(image(0, 10), problems=(problem("image-not-found"),))
    assert verdict.outcome is Outcome.FAILED
    assert "image-not-found" in verdict.lines[0]
    assert ask(image(0, 10), problems=(problem("registry-busy"),)).outcome is Outcome.WAITING
    assert ask(image(9, 10), problems=(problem("image-not-found"),)).outcome is Outcome.READY


def test_only_what_is_asked_for_counts() -> None:
    other = image(0, 10, pool="cpu", profiles=["notebook@1"])
    kept = image(0, 10, required=False)
    assert ask(image(10, 10), other, kept, pool="gpu").outcome is Outcome.READY
    assert ask(image(10, 10), other, profile="gpu-full").outcome is Outcome.READY
    assert ask(image(10, 10), other, profile="gpu-full@3").outcome is Outcome.READY
    assert ask(image(10, 10), other).outcome is Outcome.WAITING


def test_what_the_service_does_not_know_yet_is_waited_for_and_named() -> None:
    """The new catalog reaches the service a while after its release; so does what is misspelt, never."""
    for question in ({"pool": "none"}, {"profile": "gpu-full@4"}):
        verdict = ask(image(10, 10), **question)
        assert verdict.outcome is Outcome.WAITING
        assert "it has gpu-full@3, gpu" in verdict.lines[0]


def test_a_release_is_not_judged_by_the_catalog_before_it() -> None:
    assert ask(image(10, 10), catalog="the-one").outcome is Outcome.READY
    verdict = ask(image(10, 10), catalog="the-next-one")
    assert (verdict.outcome, "taken over" in verdict.lines[0]) == (Outcome.WAITING, True)


def test_a_quota_that_is_full_is_a_matter_of_time_and_rights_are_not() -> None:
    full = problem("quota-full", "all images")
    assert ask(image(0, 10), problems=(full,)).outcome is Outcome.WAITING
    refused = problem("pulls-refused", "all images")
    assert ask(image(0, 10), problems=(refused,)).outcome is Outcome.FAILED
