"""From a verdict to what a user is told: sentences, evidence, and the buttons that make sense now.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hub_ext.protocol import REPORT_SECONDS, Act, Answer, Button, Evidence, Limit, SaveRequest, State
from hub_ext.units import format_duration

from .limits import Limits
from .reasons import Reason, sentence
from .signal import Source
from .track import Track
from .verdict import Action, Verdict

SOON: Final = 180.0
"""Seconds before a deadline from which on reports come more often."""
SOON_SECONDS: Final = 10.0
SAVING_SECONDS: Final = 5.0

LOST: Final = (
    "What kernels hold in memory is lost: variables, models, running cells.",
    "What a kernel printed after its page was closed is lost.",
)
_SOURCES: Final = {
    Source.HUB: "hub",
    Source.AGENT: "agent",
    Source.PRESENCE: "agent",
    Source.CPU: "pod",
    Source.GPU: "dcgm",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """One server as it was judged last."""

    verdict: Verdict
    track: Track
    limits: Limits
    acts: bool
    """False while nothing is stopped by itself."""
    has_page: bool = False
    """A JupyterLab page is open that can save documents."""
    handoff_url: str = ""


def unseen(*, acts: bool) -> Answer:
    """Answer a server that was not judged yet."""
    return Answer(
        state=State.UNKNOWN,
        reason=Reason.NOT_SEEN,
        text=sentence(Reason.NOT_SEEN),
        observe_only=not acts,
    )


def build_answer(outlook: Outlook, now: datetime) -> Answer:
    """Say what is going to happen to a server, and why."""
    verdict = outlook.verdict
    stage = verdict.stage if verdict.told in {State.WARNED, State.SAVING, State.STOPPING} else 0
    left = _left(verdict, now)
    return Answer(
        state=verdict.told,
        reason=verdict.reason,
        text=text_of(verdict),
        observe_only=not outlook.acts,
        limit=verdict.limit,
        deadline=verdict.deadline,
        seconds_left=left,
        stage=stage,
        lost=LOST if stage else (),
        buttons=tuple(_buttons(outlook)),
        save=_save(outlook, now),
        evidence=tuple(_evidence(verdict, now)),
        next_report_seconds=_pace(verdict, left),
    )


def text_of(verdict: Verdict) -> str:
    """Say why in one or two sentences."""
    more = verdict.held or (Reason.UNATTENDED if verdict.unattended else None)
    text = sentence(verdict.reason, verdict.subject)
    return f"{text} {sentence(more)}" if more else text


def _left(verdict: Verdict, now: datetime) -> float | None:
    return None if verdict.deadline is None else max(0.0, (verdict.deadline - now).total_seconds())


def _pace(verdict: Verdict, left: float | None) -> float:
    if verdict.told is State.SAVING:
        return SAVING_SECONDS
    soon = verdict.told is State.WARNED and left is not None and left < SOON
    return SOON_SECONDS if soon else REPORT_SECONDS


def _save(outlook: Outlook, now: datetime) -> SaveRequest | None:
    saving = outlook.track.saving
    if outlook.verdict.action is not Action.SAVE or saving is None or saving.done is not None:
        return None
    left = outlook.limits.save_within - (now - saving.asked).total_seconds()
    return SaveRequest(id=saving.id, seconds=max(1.0, left))


def _evidence(verdict: Verdict, now: datetime) -> Iterator[Evidence]:
    for one in verdict.signals:
        yield Evidence(
            source=_SOURCES[one.source],
            value=one.value.value,
            text=sentence(one.reason, one.subject),
            age_seconds=None if one.at is None else max(0.0, (now - one.at).total_seconds()),
        )


def keep_refusal(outlook: Outlook) -> str:
    """Say why Keep cannot be pressed; empty where it can."""
    if outlook.track.stop_by == "admin":
        return sentence(Reason.ADMIN_ASKED)
    if outlook.limits.idle is None and outlook.limits.session is None:
        return "There is no limit to put off."
    if outlook.track.keeps >= outlook.limits.keeps:
        return f"You have kept it {outlook.track.keeps} times, which is as often as you may."
    return ""


def extends_session(verdict: Verdict) -> bool:
    """Say whether Keep puts off the end of the session: once users were warned of it."""
    return verdict.limit is Limit.SESSION and verdict.stage > 0


def _buttons(outlook: Outlook) -> Iterator[Button]:
    limits, refusal = outlook.limits, keep_refusal(outlook)
    if outlook.verdict.told is not State.UNLIMITED:
        left = limits.keeps - outlook.track.keeps
        yield Button(
            act=Act.KEEP,
            label=f"Keep {format_duration(timedelta(seconds=limits.keep_for))}",
            enabled=not refusal,
            text=refusal or (f"You can do this {left} more times." if left > 1 else "This is the last time."),
        )
    if outlook.has_page:
        yield Button(act=Act.SAVE_STOP, label="Save and stop", text="Saves open documents, then stops.")
    yield Button(act=Act.STOP, label="Stop", text="Your files stay; what is not saved is lost.")
    if outlook.handoff_url:
        yield Button(
            act=Act.HANDOFF,
            label="Run as a job",
            text="Goes on without this workspace.",
            url=outlook.handoff_url,
        )
