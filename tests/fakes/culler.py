"""Facts about servers, as tests write them, and a clockwork that looks at one server again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hub_ext.protocol import Attribution
from services.idle_culler.facts import (
    AgentFacts,
    CpuFacts,
    Facts,
    GpuFacts,
    GpuReading,
    HubFacts,
    KernelFacts,
    PodFacts,
)
from services.idle_culler.judge import judge
from services.idle_culler.limits import Limits
from services.idle_culler.policy import Thresholds
from services.idle_culler.track import Track
from services.idle_culler.verdict import Action, Pace, Verdict

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GPU = "nvidia.com/gpu"
SLICE = "nvidia.com/mig-1g.18gb"


def pod(gpus: int = 1, resource: str = GPU, **fields: Any) -> PodFacts:
    """A pod with so many GPUs."""
    return PodFacts(namespace="hub", name="jupyter-ada", devices={resource: gpus} if gpus else {}, **fields)


def reading(engine: float | None = 0.0, utilization: float | None = None, **fields: Any) -> GpuReading:
    """A card that is measured without gaps."""
    return GpuReading(
        **{"uuid": "GPU-a", "coverage": 1.0, "age_seconds": 15.0, **fields},
        engine=engine,
        utilization=utilization,
    )


def metrics(at: datetime, *readings: GpuReading, window: float = 600) -> GpuFacts:
    """Readings of the GPUs of one pod."""
    return GpuFacts(at=at, window_seconds=window, gpus=readings)


def cpu(at: datetime, cores: float | None = 0.01, *, coverage: float = 1.0, window: float = 600) -> CpuFacts:
    """Processors of one pod."""
    return CpuFacts(at=at, window_seconds=window, cores=cores, coverage=coverage)


def agent(at: datetime, **fields: Any) -> AgentFacts:
    """A workspace in which one kernel rests, nobody types, and no page is open."""
    rest: dict[str, Any] = {
        "window_seconds": 30.0,
        "kernels": (KernelFacts(id="k1", state="idle", state_seconds=9000.0, connections=0),),
        "attribution": Attribution.TRUSTED,
        "gpu_use": {"GPU-a": 0.0},
    }
    return AgentFacts(at=at, **{**rest, **fields})


def hub(at: datetime, *, quiet: timedelta = timedelta(hours=3), started: datetime | None = None) -> HubFacts:
    """A server that was started long ago and has been quiet."""
    return HubFacts(started=started or NOON - timedelta(hours=4), last_activity=at - quiet)


def idle_facts(at: datetime, *, gpus: int = 1, **parts: Any) -> Facts:
    """A server that is idle by all signals."""
    whole: dict[str, Any] = {
        "hub": hub(at),
        "pod": pod(gpus),
        "agent": agent(at),
        "cpu": cpu(at),
        "gpu": metrics(at, *(reading(uuid=f"GPU-{n}") for n in range(gpus))) if gpus else None,
    }
    return Facts(user="ada", at=at, **{**whole, **parts})


@dataclass
class Watch:
    """Looks at one server every minute and keeps what was judged."""

    limits: Limits = field(default_factory=lambda: Limits(idle=5400.0))
    thresholds: Thresholds = field(default_factory=Thresholds)
    pace: Pace = field(default_factory=Pace)
    now: datetime = NOON
    track: Track | None = None
    verdicts: list[tuple[datetime, Verdict]] = field(default_factory=list)

    def look(self, facts: Facts) -> Verdict:
        """Judge the server once, now."""
        verdict, self.track = judge(
            facts, self.track, self.limits, self.thresholds, pace=self.pace, now=self.now
        )
        self.verdicts.append((self.now, verdict))
        return verdict

    def run(
        self,
        minutes: float,
        facts: Callable[[datetime], Facts] = idle_facts,
        *,
        every: timedelta = MINUTE,
    ) -> Verdict:
        """Look once a minute for so many minutes, or until it is to be stopped."""
        end = self.now + timedelta(minutes=minutes)
        verdict = self.look(facts(self.now))
        while self.now < end and verdict.action is not Action.STOP:
            self.now += every
            verdict = self.look(facts(self.now))
        return verdict

    @property
    def memory(self) -> Track:
        assert self.track is not None
        return self.track

    def warnings(self) -> list[float]:
        """Seconds that were left at each warning."""
        return [v.seconds_left or 0.0 for _, v in self.verdicts if v.action is Action.WARN]

    def change(self, **fields: Any) -> None:
        """Change what is remembered."""
        self.track = replace(self.memory, **fields)
