"""Playing a recording through a policy: who would have been stopped, and what would have come back.

A server that is stopped in the replay goes on in the recording; what it held from then on would have been
free. If it worked again later in the same session, somebody would have had to start it anew: that is counted
too, since it is what a policy costs.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from hub_ext.catalog.model import Catalog

from .facts import Facts
from .judge import judge
from .limits import Limits, gpu_kind
from .policy import Policy
from .signal import Value
from .track import Track
from .verdict import Action, Pace, Verdict

SHORTEST: Final = timedelta(minutes=1)


@dataclass(slots=True, kw_only=True)
class Life:
    """One session in the replay."""

    user: str
    server: str
    started: datetime | None
    track: Track | None = None
    last: Facts
    verdict: Verdict
    limits: Limits = field(default_factory=Limits)
    warned: list[datetime] = field(default_factory=list)
    stopped: datetime | None = None
    stop: Verdict | None = None
    devices: int = 0
    used_again: datetime | None = None
    """First work after the stop, where the recording shows any."""

    @property
    def gpu_hours_back(self) -> float:
        """GPU hours (of cards, slices or shares alike) from the stop to the end of the recording."""
        if self.stopped is None:
            return 0.0
        end = self.used_again or self.last.at
        return self.devices * (end - self.stopped).total_seconds() / 3600

    def as_dict(self) -> dict[str, Any]:
        """Give the outcome as JSON data."""
        return {
            "user": self.user,
            "server": self.server,
            "gpu": gpu_kind(self.last.pod).value,
            "devices": self.devices,
            "started": _text(self.started),
            "lastSeen": _text(self.last.at),
            "warned": [_text(moment) for moment in self.warned],
            "stopped": _text(self.stopped),
            "reason": self.stop.reason.value if self.stop else None,
            "limit": self.stop.limit.value if self.stop and self.stop.limit else None,
            "gpuHoursBack": round(self.gpu_hours_back, 2),
            "usedAgain": _text(self.used_again),
        }


def replay(
    facts: Iterable[Facts], policy: Policy, catalog: Catalog | None, *, every: timedelta
) -> Iterator[Life]:
    """Play observations, in the order of their times, and give every session once.

    Parameters
    ----------
    every
        Interval of the recording: over a longer gap clocks stand still, as they do live.
    """
    pace = Pace(every=max(every, SHORTEST))
    lives: dict[tuple[str, str], Life] = {}
    for one in facts:
        life = lives.get(one.key)
        if life is not None and life.started != one.hub.started:
            yield lives.pop(one.key)
            life = None
        limits = policy.limits(one.pod, catalog, one.at)
        verdict, track = judge(
            one, life.track if life else None, limits, policy.thresholds, pace=pace, now=one.at
        )
        if life is None:
            life = lives[one.key] = Life(
                user=one.user, server=one.server, started=one.hub.started, last=one, verdict=verdict
            )
        _live_on(life, one, verdict, track, limits)
    yield from lives.values()


def _live_on(life: Life, facts: Facts, verdict: Verdict, track: Track, limits: Limits) -> None:
    life.last, life.track, life.limits = facts, track, limits
    life.devices = sum(facts.pod.devices.values()) if facts.pod else life.devices
    if life.stopped is not None:
        if verdict.value is Value.BUSY and life.used_again is None:
            life.used_again = facts.at
        return
    life.verdict = verdict
    if verdict.action is Action.WARN:
        life.warned.append(facts.at)
    if verdict.action in {Action.SAVE, Action.STOP}:
        life.stopped, life.stop = facts.at, verdict


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
