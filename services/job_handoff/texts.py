"""The sentences about runs, each written once. They are plain text: whoever puts one into HTML escapes it.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from .reasons import RunReason

_TELL: Final = "Please tell an administrator."

_TEXTS: Final[Mapping[RunReason, Callable[[str], str]]] = {
    RunReason.QUEUED: lambda _: "Waiting in the queue.",
    RunReason.WAITING_FOR_QUOTA: lambda _: "Waiting in the queue until your team has room again.",
    RunReason.EXCEEDS_QUEUE: lambda _: (
        "The run asks for more than your team's queue can ever hold. Cancel it and take a smaller profile."
    ),
    RunReason.NO_MATCHING_FLAVOR: lambda _: f"No kind of node in the queue takes this run. {_TELL}",
    RunReason.TOPOLOGY: lambda _: "Waiting for GPUs that are close enough to each other.",
    RunReason.WAITING_FOR_PREEMPTED: lambda _: (
        "Starting soon: other runs save their checkpoints and make room."
    ),
    RunReason.WAITING_FOR_PODS: lambda _: "Waiting until the run before it in the queue has started.",
    RunReason.QUEUE_MISCONFIGURED: lambda _: f"The queue of your team is not set up as it should be. {_TELL}",
    RunReason.QUEUE_STOPPED: lambda _: "The queue of your team takes nothing at the moment.",
    RunReason.HELD: lambda _: "Held back until it is released.",
    RunReason.ADMISSION_CHECK: lambda _: (
        "Waiting for a check of the cluster, such as a node that is being added."
    ),
    RunReason.PREEMPTED: lambda _: (
        "Something more urgent needed the room. The run waits again and goes on from its last checkpoint."
    ),
    RunReason.REQUEUED: lambda _: "Its pods could not start in time. The run waits in the queue again.",
    RunReason.ADMITTED: lambda _: "It is its turn; its pods are being created.",
    RunReason.NO_PODS: lambda _: f"It is its turn, but the cluster does not create its pods. {_TELL}",
    RunReason.RUNNING: lambda _: "Running.",
    RunReason.SUCCEEDED: lambda _: "Done.",
    RunReason.RESULTS_NOT_KEPT: lambda what: f"Done, but not all results could be kept{what}.",
    RunReason.CANCELED: lambda _: "Canceled.",
    RunReason.DEADLINE: lambda _: (
        "It took longer than it may. Give it more time, or go on from its checkpoints."
    ),
    RunReason.OUT_OF_MEMORY: lambda _: (
        "It used up its memory. Take a profile with more, or load less at once."
    ),
    RunReason.GPU_OUT_OF_MEMORY: lambda _: (
        "It used up the memory of its GPU. Take smaller batches, or a profile with a larger part of a card."
    ),
    RunReason.ENDED_BY_CLUSTER: lambda _: (
        "The cluster needed the room and ended it; a retry goes on from there."
    ),
    RunReason.EVICTED: lambda _: "Its node ran short and ended it. Try again.",
    RunReason.KERNEL_MISSING: lambda what: f"The image does not have the kernel of this notebook{what}.",
    RunReason.PAPERMILL_MISSING: lambda _: f"The image has no papermill, which runs notebooks. {_TELL}",
    RunReason.ENTRY_MISSING: lambda _: "The file that was to run is not in the source.",
    RunReason.LAUNCHER_MISSING: lambda what: f"The image does not have what starts this file{what}.",
    RunReason.SOURCE_LOST: lambda _: "The source could not be fetched.",
    RunReason.SERVICE_AWAY: lambda _: "The run could not reach the service that keeps its files. Try again.",
    RunReason.DISK_FULL: lambda _: (
        "The disk of its pod is full. Take a profile with more scratch space, or leave files out."
    ),
    RunReason.PROGRAM_FAILED: lambda what: f"The program ended with an error{what}. Its log says more.",
    RunReason.REFUSED: lambda _: f"The cluster does not accept this run. {_TELL}",
    RunReason.STUCK: lambda what: f"It was its turn, but it could not start{what}. It gave its room back.",
    RunReason.DEACTIVATED: lambda _: "It was taken out of the queue by an administrator.",
    RunReason.FAILED: lambda _: "It failed. Its log says more.",
}
_TOLD: Final = frozenset({RunReason.KERNEL_MISSING, RunReason.LAUNCHER_MISSING, RunReason.RESULTS_NOT_KEPT})
"""Reasons whose detail is what the runner said."""
_TAKES: Final = _TOLD | {RunReason.PROGRAM_FAILED, RunReason.STUCK}
"""Reasons whose sentence has room for a detail."""
_WAITS: Final = frozenset({RunReason.QUEUED, RunReason.WAITING_FOR_QUOTA, RunReason.PREEMPTED})


def sentence(reason: RunReason, what: str = "", *, position: int | None = None) -> str:
    """Say how a run stands.

    Parameters
    ----------
    position
        Runs ahead of it in its queue.
    """
    text = _TEXTS[reason](f" ({what})" if what and reason in _TAKES else "")
    if position is None or reason not in _WAITS:
        return text
    ahead = (
        "It is the next one."
        if position == 0
        else f"{position} {'run is' if position == 1 else 'runs are'} ahead."
    )
    return f"{text} {ahead}"


_WORKSPACE: Final = re.compile(
    r"(?P<one>\b(?:a|one|many|running|smaller|the|this|your) |\b(?=workspaces of this priority))"
    r"workspace(?=s?(?:$|['\s]|[,;:.)](?!\w)))",
    re.IGNORECASE,
)
"""As our own sentences speak of one: images, queues and claims in them may be called so too."""


def of_run(text: str) -> str:
    """Let a sentence about the start of a workspace speak of a run."""
    return _WORKSPACE.sub(r"\g<one>run", text)


def read_word(message: str) -> tuple[RunReason, str, str] | None:
    """Read what the runner left when it ended; None if the message is not from it."""
    if not message.startswith("{"):
        return None
    try:
        said = json.loads(message)
    except ValueError:
        return None
    return read_said(said) if isinstance(said, dict) else None


def read_said(said: Mapping[str, Any]) -> tuple[RunReason, str, str] | None:
    """Give reason, detail for the sentence and the rest. A program can forge it, for its own run only."""
    word = said.get("reason")
    if word not in {reason.value for reason in RunReason}:
        return None
    reason, message = RunReason(word), str(said.get("message", ""))
    if reason is RunReason.PROGRAM_FAILED:
        return reason, f"exit status {said.get('exit')}", message
    return reason, message if reason in _TOLD else "", message
