"""The words for why, and the sentences that people read; each is written once, here.

Pure: no clock, no network.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a signal or a verdict is what it is."""

    # busy
    USER_ACTIVE = "user-active"
    KERNEL_RUNS = "kernel-runs"
    TERMINAL_RUNS = "terminal-runs"
    BACKGROUND_RUNS = "background-runs"
    PROCESS_RUNS = "process-runs"
    GPU_ACTIVE = "gpu-active"
    CPU_ACTIVE = "cpu-active"
    HUB_ACTIVE = "hub-active"
    CLOCK_AHEAD = "clock-ahead"
    # idle
    NOTHING_RUNS = "nothing-runs"
    MEMORY_HELD = "memory-held"
    KERNEL_WAITS = "kernel-waits"
    NOBODY_THERE = "nobody-there"
    OPEN_TAB = "open-tab"
    GPU_QUIET = "gpu-quiet"
    CPU_QUIET = "cpu-quiet"
    HUB_QUIET = "hub-quiet"
    WORD_CAPPED = "word-capped"
    # unknown
    NO_AGENT = "no-agent"
    AGENT_SILENT = "agent-silent"
    AGENT_INCOMPLETE = "agent-incomplete"
    NO_ACTIVITY_KNOWN = "no-activity-known"
    NO_CPU_READINGS = "no-cpu-readings"
    CPU_GAPS = "cpu-gaps"
    NO_POD = "no-pod"
    NO_METRICS = "no-metrics"
    NO_GPU_READINGS = "no-gpu-readings"
    GPU_STALE = "gpu-stale"
    GPU_GAPS = "gpu-gaps"
    GPUS_MISSING = "gpus-missing"
    METERS_DISAGREE = "meters-disagree"
    NOT_ATTRIBUTED = "not-attributed"
    LABELS_BROKEN = "labels-broken"
    # verdicts
    IDLE = "idle"
    GPU_IDLE = "gpu-idle"
    SESSION_END = "session-end"
    USER_ASKED = "user-asked"
    ADMIN_ASKED = "admin-asked"
    KEPT = "kept"
    UNATTENDED = "unattended"
    NOT_READY = "not-ready"
    NOT_SEEN = "not-seen"
    # why a stop does not happen now
    OBSERVE_ONLY = "observe-only"
    GRACE = "grace"
    TOO_MANY = "too-many"
    TOO_LITTLE_KNOWN = "too-little-known"
    UNSAVED = "unsaved"


TEXTS: Final = {
    Reason.USER_ACTIVE: "You are working in JupyterLab.",
    Reason.KERNEL_RUNS: "A kernel is running{of}.",
    Reason.TERMINAL_RUNS: "A terminal is at work{of}.",
    Reason.BACKGROUND_RUNS: "A job in the background of a terminal is at work{of}.",
    Reason.PROCESS_RUNS: "A process is at work{of}.",
    Reason.GPU_ACTIVE: "The GPU is in use{of}.",
    Reason.CPU_ACTIVE: "The processors are in use.",
    Reason.HUB_ACTIVE: "A page is open or the server was used a short while ago.",
    Reason.CLOCK_AHEAD: "The last activity lies in the future: a clock is wrong. It counts as just now.",
    Reason.NOTHING_RUNS: "No kernel, terminal or process is at work.",
    Reason.MEMORY_HELD: "Nothing is at work, and memory of a GPU is held{of}.",
    Reason.KERNEL_WAITS: "A kernel is busy but does nothing{of}: it waits, for input or for something else.",
    Reason.NOBODY_THERE: "No page is open and nobody is typing.",
    Reason.OPEN_TAB: "A page is open, but nobody is typing.",
    Reason.GPU_QUIET: "The GPU is not in use{of}. Memory that is held is no use.",
    Reason.CPU_QUIET: "The processors are not in use.",
    Reason.HUB_QUIET: "The server was not used for a while.",
    Reason.WORD_CAPPED: "Only the workspace itself says that it is used, and has said so for too long.",
    Reason.NO_AGENT: "The workspace does not report what runs in it.",
    Reason.AGENT_SILENT: "The workspace has stopped reporting what runs in it.",
    Reason.AGENT_INCOMPLETE: "The workspace cannot yet tell all that runs in it.",
    Reason.NO_ACTIVITY_KNOWN: "The hub does not know when the server was last used.",
    Reason.NO_CPU_READINGS: "The use of the processors is not measured.",
    Reason.CPU_GAPS: "The readings of the processors have gaps.",
    Reason.NO_POD: "The pod of the server was not found, or is one of several.",
    Reason.NO_METRICS: "The use of GPUs could not be asked for.",
    Reason.NO_GPU_READINGS: "The use of the GPU is not measured.",
    Reason.GPU_STALE: "The readings of the GPU have stopped.",
    Reason.GPU_GAPS: "The readings of the GPU have gaps.",
    Reason.GPUS_MISSING: "Not all GPUs of the server are measured{of}.",
    Reason.METERS_DISAGREE: "Two meters of the GPU contradict each other.",
    Reason.NOT_ATTRIBUTED: "The card is in use, and it is not known by whom.",
    Reason.LABELS_BROKEN: "The readings of the GPUs do not say which pods use them.",
    Reason.IDLE: "Nothing has run here for a while.",
    Reason.GPU_IDLE: "The GPU has not been used for a while, and nothing else runs here.",
    Reason.SESSION_END: "The longest time that this workspace may run is nearly over, whatever runs in it.",
    Reason.USER_ASKED: "You asked to stop this workspace.",
    Reason.ADMIN_ASKED: "An administrator asked to stop this workspace.",
    Reason.KEPT: "You keep this workspace.",
    Reason.UNATTENDED: "Nobody has it open: what runs goes on, and could also run as a job.",
    Reason.NOT_READY: "The server is starting or stopping.",
    Reason.NOT_SEEN: "The idle-culler has not looked at this workspace yet.",
    Reason.OBSERVE_ONLY: "Nothing is stopped at present: the rules are only being tried out.",
    Reason.GRACE: "The idle-culler or the hub has just started: nothing is stopped yet.",
    Reason.TOO_MANY: "So many servers seem idle at once that an administrator has to look first.",
    Reason.TOO_LITTLE_KNOWN: "So little is known about all servers that nothing is stopped.",
    Reason.UNSAVED: "A document could not be saved; the stop waits.",
}


def sentence(reason: Reason, subject: str = "") -> str:
    """Give the sentence for a reason; `subject` comes from users and is put in as it is, once."""
    before, place, after = TEXTS[reason].partition("{of}")
    return before + (f" ({subject})" if subject and place else "") + after
