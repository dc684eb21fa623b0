"""What JupyterLab shows: the culler's last answer and the GPUs, as one JSON object.

Pure: no clock.
"""

from __future__ import annotations

from typing import Any, Final

from hub_ext.protocol import Answer, Report, SaveRequest

SCHEMA: Final[dict[str, Any]] = {
    "$id": "https://gpu-workspaces.jupyter.org/events/session/v1",
    "version": "1",
    "title": "Session",
    "description": "What is going to happen to this server, and how its GPUs are used",
    "personal-data": False,
    "type": "object",
    "required": ["view"],
    "properties": {"view": {"type": "object"}},
}
"""Of the event that pages of JupyterLab listen to."""
EVENT: Final[str] = SCHEMA["$id"]


def build_view(
    *,
    answer: Answer | None,
    answer_age_seconds: float | None,
    problem: str | None,
    report: Report | None,
    save: SaveRequest | None,
    handoff: bool,
) -> dict[str, Any]:
    """The object that pages get.

    Parameters
    ----------
    problem
        Why the last report was not answered, None where it was or where no culler is set.
    save
        What every page is to save now.
    handoff
        Whether files can be run as jobs.
    """
    return {
        "answer": None if answer is None else answer.model_dump(mode="json", by_alias=True),
        "answerAgeSeconds": answer_age_seconds,
        "problem": problem,
        "gpus": [] if report is None else [gpu.model_dump(mode="json", by_alias=True) for gpu in report.gpus],
        "attribution": None if report is None else report.self_test.attribution.value,
        "save": None if save is None else save.model_dump(mode="json", by_alias=True),
        "handoff": handoff,
    }
