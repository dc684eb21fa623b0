"""A month of sessions with their truth, and every signal as it would show that truth through faults.

Truth is a list of phases in which somebody or something works; between them, and after the last, the
session is idle. Signals are made from the truth, then faults take parts of them away, set them to zero, or
forge them.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from hub_ext.protocol import Attribution, Limit
from services.idle_culler.breaker import WINDOW, Pulse, check, is_idle_stop
from services.idle_culler.facts import (
    AgentFacts,
    CpuFacts,
    Facts,
    GpuFacts,
    GpuReading,
    HubFacts,
    KernelFacts,
    PodFacts,
    Work,
)
from services.idle_culler.judge import judge
from services.idle_culler.limits import Limits
from services.idle_culler.policy import Breaker, Thresholds
from services.idle_culler.track import TRACKS, Track
from services.idle_culler.verdict import Action, Pace, Verdict

HOUR = 3600.0
WINDOW_SECONDS = 600.0
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
LIMITS = Limits(idle=1.5 * HOUR, session=36 * HOUR, agent_cap=8 * HOUR)
THRESHOLDS = Thresholds()


class Kind(StrEnum):
    """What goes on in a phase."""

    TRAINING = "training"
    """A kernel uses the GPU."""
    THREAD = "thread"
    """A silent thread uses a processor under a kernel that says it is idle."""
    DETACHED = "detached"
    """A process without kernel and terminal uses a processor."""
    TYPING = "typing"
    """The user edits; nothing computes."""
    BURSTS = "bursts"
    """The GPU works for half a minute out of every eight."""


class Fault(StrEnum):
    """What can be wrong with one session's signals."""

    NONE = "none"
    NO_AGENT = "no-agent"
    AGENT_COMES_AND_GOES = "agent-comes-and-goes"
    ENGINE_STUCK = "engine-stuck"
    """The engine meter reads zero whatever happens; the plain one is right."""
    UNMAPPED = "unmapped"
    """The exporter does not know who uses the card while it works."""
    GAPS = "gaps"
    CLOCK_AHEAD = "clock-ahead"
    FORGED_HUB = "forged-hub"
    """A script keeps the hub's activity fresh."""
    FORGED_AGENT = "forged-agent"
    """The workspace always says that it works."""
    OPEN_TAB = "open-tab"


@dataclass(frozen=True, slots=True)
class Phase:
    start: float
    end: float
    kind: Kind


@dataclass(slots=True)
class Session:
    """One session and its truth. Times are seconds since the beginning of the month."""

    user: str
    start: float
    horizon: float
    """When the user would have stopped it, had nobody else."""
    phases: list[Phase]
    gpus: int
    sliced: bool
    fault: Fault
    away: list[tuple[float, float]] = field(default_factory=list)
    """When its own signals fail, for faults that come and go."""
    track: Track | None = None
    stopped: float | None = None
    stop: Verdict | None = None
    seen: float = 0.0
    starts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [phase.start for phase in self.phases]

    def phase_at(self, moment: float) -> Phase | None:
        number = bisect_right(self.starts, moment) - 1
        if number >= 0 and moment < self.phases[number].end:
            return self.phases[number]
        return None

    def last_work(self, moment: float) -> float:
        """When something last worked, at or before a moment."""
        number = bisect_right(self.starts, moment) - 1
        return min(moment, self.phases[number].end) if number >= 0 else self.start

    def works_in(self, start: float, end: float, *kinds: Kind) -> bool:
        """Say whether a phase of these kinds overlaps a span."""
        number = bisect_right(self.starts, end)
        return any(p.end > start and p.kind in kinds for p in self.phases[max(0, number - 2) : number])

    def is_away(self, moment: float) -> bool:
        return any(start <= moment < end for start, end in self.away)


@dataclass(frozen=True, slots=True)
class Outages:
    """What fails for all at once."""

    prometheus: tuple[tuple[float, float], ...]
    hub: tuple[tuple[float, float], ...]
    culler: tuple[tuple[float, float], ...]

    @staticmethod
    def covers(spans: tuple[tuple[float, float], ...], moment: float) -> bool:
        return any(start <= moment < end for start, end in spans)


def build_month(seed: int, sessions: int = 500, days: int = 30) -> tuple[list[Session], Outages]:
    """Draw sessions and outages."""
    draw = random.Random(seed)
    span = days * 24 * HOUR
    outages = Outages(
        prometheus=tuple(_spans(draw, 5, span, 0.5 * HOUR, 3 * HOUR)),
        hub=tuple(_spans(draw, 6, span, 0.1 * HOUR, HOUR)),
        culler=tuple(_spans(draw, 8, span, 0.05 * HOUR, 2 * HOUR)),
    )
    weights = dict.fromkeys(Fault, 4.0) | {Fault.NONE: 50.0, Fault.NO_AGENT: 8.0, Fault.OPEN_TAB: 10.0}
    weights |= {Fault.FORGED_AGENT: 1.5, Fault.FORGED_HUB: 3.0}
    faults = draw.choices(list(weights), list(weights.values()), k=sessions)
    return [_session(draw, f"user{n}", span, fault) for n, fault in enumerate(faults)], outages


def _spans(
    draw: random.Random, n: int, span: float, low: float, high: float
) -> Iterator[tuple[float, float]]:
    for _ in range(n):
        start = draw.uniform(0, span)
        yield start, start + draw.uniform(low, high)


def _session(draw: random.Random, user: str, span: float, fault: Fault) -> Session:
    start = draw.uniform(0, span)
    moment, phases = start, []
    for _ in range(draw.randint(1, 6)):
        kind, length = draw.choice(list(Kind)), draw.uniform(0.1, 3.0) * HOUR
        phases.append(Phase(moment, moment + length, kind))
        moment += length + draw.choice([0.0, draw.uniform(0, 1.2 * HOUR), draw.uniform(0, 1.2 * HOUR)])
    gpus = draw.choice([1, 1, 1, 2, 8])
    away: list[tuple[float, float]] = []
    if fault in {Fault.AGENT_COMES_AND_GOES, Fault.GAPS, Fault.UNMAPPED}:
        away = [
            (at, at + draw.uniform(0.2, 2.5) * HOUR) for at in (start, moment, draw.uniform(start, moment))
        ]
    return Session(
        user=user,
        start=start,
        horizon=phases[-1].end + draw.uniform(24, 72) * HOUR,
        phases=phases,
        gpus=gpus,
        sliced=gpus == 1 and draw.random() < 0.4 and fault is not Fault.ENGINE_STUCK,
        fault=fault,
        away=away,
    )


def at(moment: float) -> datetime:
    return BEGIN + timedelta(seconds=moment)


# --- signals


def facts_of(session: Session, moment: float, outages: Outages) -> Facts:
    """Show the truth of a moment, through the session's fault and the outages."""
    now = at(moment)
    down = outages.covers(outages.prometheus, moment)
    resource = "nvidia.com/mig-1g.18gb" if session.sliced else "nvidia.com/gpu"
    return Facts(
        user=session.user,
        at=now,
        hub=_hub(session, moment),
        pod=PodFacts(namespace="hub", name=session.user, devices={resource: session.gpus}),
        agent=_agent(session, moment),
        gpu=None if down else _gpu(session, moment, now),
        cpu=None if down else _cpu(session, moment, now),
    )


def _hub(session: Session, moment: float) -> HubFacts:
    number = bisect_right(session.starts, moment)
    typed = [p for p in session.phases[:number] if p.kind is Kind.TYPING]
    last = min(moment, typed[-1].end) if typed else session.start
    if session.fault in {Fault.FORGED_HUB, Fault.OPEN_TAB}:
        last = moment - 40
    if session.fault is Fault.CLOCK_AHEAD and typed:
        last += 0.9 * HOUR
    return HubFacts(started=at(session.start), last_activity=at(last))


def _agent(session: Session, moment: float) -> AgentFacts | None:
    if session.fault is Fault.NO_AGENT:
        return None
    if session.fault is Fault.AGENT_COMES_AND_GOES and session.is_away(moment):
        return AgentFacts(at=at(moment - 900), window_seconds=30.0)
    phase = session.phase_at(moment)
    kind = phase.kind if phase else None
    forged = session.fault is Fault.FORGED_AGENT
    busy = kind is Kind.TRAINING or (kind is Kind.BURSTS and _bursts(moment))
    work = [Work(origin="detached", owner="7", cpu=0.8)] if kind is Kind.DETACHED else []
    if kind is Kind.THREAD or forged:
        work.append(Work(origin="kernel", owner="k", cpu=0.9))
    typing = kind is Kind.TYPING
    last_typed = moment - max(
        [p.end for p in session.phases if p.kind is Kind.TYPING and p.end < moment] or [0.0]
    )
    return AgentFacts(
        at=at(moment),
        window_seconds=30.0,
        work=tuple(work),
        kernels=(
            KernelFacts(id="k", state="busy" if busy else "idle", state_seconds=9000.0 if not busy else 60.0),
        ),
        gpu_use={"GPU": 0.9 if busy else 0.0},
        attribution=Attribution.TRUSTED,
        unsaved=0 if typing or session.fault is Fault.OPEN_TAB else None,
        input_seconds=5.0 if typing or forged else last_typed,
    )


def _bursts(moment: float) -> bool:
    return moment % 480 < 30


def _gpu(session: Session, moment: float, now: datetime) -> GpuFacts:
    used = session.works_in(moment - WINDOW_SECONDS, moment, Kind.TRAINING, Kind.BURSTS)
    value, fault = (0.7 if used else 0.0), session.fault
    stuck = fault is Fault.ENGINE_STUCK
    one = GpuReading(
        uuid="GPU",
        slice="7" if session.sliced else "",
        engine=0.0 if stuck else value,
        utilization=None if session.sliced else value,
        coverage=0.4 if fault is Fault.GAPS and session.is_away(moment) else 1.0,
        age_seconds=20.0,
        unmapped=fault is Fault.UNMAPPED and session.is_away(moment),
    )
    if one.unmapped:
        one = replace(one, engine=0.0, utilization=0.0)
    rest = GpuReading(uuid="GPU-rest", engine=0.0, utilization=0.0, coverage=1.0, age_seconds=20.0)
    others = tuple(replace(rest, uuid=f"GPU-{n}") for n in range(session.gpus - 1))
    return GpuFacts(at=now, window_seconds=WINDOW_SECONDS, gpus=(one, *others))


def _cpu(session: Session, moment: float, now: datetime) -> CpuFacts:
    busy = session.works_in(moment - WINDOW_SECONDS, moment, Kind.TRAINING, Kind.THREAD, Kind.DETACHED)
    return CpuFacts(at=now, window_seconds=WINDOW_SECONDS, cores=0.9 if busy else 0.02, coverage=1.0)


# --- living through it


@dataclass(slots=True)
class Result:
    """What came of a month."""

    sessions: int
    stopped: int
    killed: list[tuple[str, Kind, Fault]]
    """Sessions that were stopped for being idle while something worked."""
    idle_hours: float
    """GPU hours in which sessions were idle, beyond the window."""
    returned_hours: float
    """Those of them that came back."""
    held_passes: int
    by_fault: dict[Fault, tuple[float, float]]

    @property
    def share_returned(self) -> float:
        return self.returned_hours / self.idle_hours


def live(sessions: list[Session], outages: Outages, *, step: float = 600.0) -> Result:
    """Let the culler watch all sessions, pass after pass."""
    pace = Pace(every=timedelta(seconds=step))
    waiting = sorted(sessions, key=lambda one: -one.start)
    running: list[Session] = []
    stops: list[datetime] = []
    held, was_down, moment, since = 0, False, waiting[-1].start, None
    while waiting or running:
        moment += step
        while waiting and waiting[-1].start <= moment:
            running.append(waiting.pop())
        running = [one for one in running if one.stopped is None and one.horizon > moment]
        if outages.covers(outages.hub, moment) or outages.covers(outages.culler, moment):
            was_down = True
            continue
        if was_down:
            _restart(running)
            was_down = False
        due = [
            (one, verdict)
            for one in running
            if (verdict := _look(one, moment, outages, pace, step)) is not None
        ]
        pulse = Pulse.of([verdict for _, verdict in due])
        gate = check(pulse, Breaker(), stopped=stops, since=since, now=at(moment))
        since, held, left = gate.since, held + (gate.reason is not None), gate.allowance
        for one, verdict in due:
            if verdict.action is not Action.STOP:
                continue
            if is_idle_stop(verdict):
                if gate.reason or left == 0:
                    continue
                left = None if left is None else left - 1
                stops.append(at(moment))
            one.stopped, one.stop = moment, verdict
        stops = [stop for stop in stops if stop > at(moment) - WINDOW]
    return measure(sessions, held)


def _restart(running: list[Session]) -> None:
    """Let a new process of the culler begin, with what the old one has written."""
    tracks = TRACKS.validate_json(
        TRACKS.dump_json(tuple(one.track for one in running if one.track), by_alias=True)
    )
    by_user = {track.user: track for track in tracks}
    for one in running:
        one.track = by_user.get(one.user)


def _look(session: Session, moment: float, outages: Outages, pace: Pace, step: float) -> Verdict | None:
    """Look as a pass does; reports between passes showed work that ended meanwhile."""
    last = session.last_work(moment)
    if moment - step < last < moment and session.fault is not Fault.NO_AGENT and last > session.start:
        quiet = replace(pace, announces=False)
        _, session.track = judge(
            facts_of(session, last - 1, outages),
            session.track,
            LIMITS,
            THRESHOLDS,
            pace=quiet,
            now=at(last - 1),
        )
    facts = facts_of(session, moment, outages)
    verdict, session.track = judge(facts, session.track, LIMITS, THRESHOLDS, pace=pace, now=facts.at)
    return verdict


def measure(sessions: list[Session], held: int) -> Result:
    """Hold what was done against the truth."""
    assert LIMITS.idle is not None
    idle = back = 0.0
    killed: list[tuple[str, Kind, Fault]] = []
    by_fault: dict[Fault, tuple[float, float]] = {}
    for one in sessions:
        phase = one.phase_at(one.stopped) if one.stopped is not None else None
        if phase and one.stop and one.stop.limit is Limit.IDLE:
            killed.append((one.user, phase.kind, one.fault))
        begins = one.phases[-1].end + LIMITS.idle
        lost = one.gpus * max(0.0, one.horizon - begins)
        got = one.gpus * max(0.0, one.horizon - max(begins, one.stopped)) if one.stopped is not None else 0.0
        idle, back = idle + lost, back + got
        before = by_fault.get(one.fault, (0.0, 0.0))
        by_fault[one.fault] = before[0] + lost / HOUR, before[1] + got / HOUR
    return Result(
        sessions=len(sessions),
        stopped=sum(one.stopped is not None for one in sessions),
        killed=killed,
        idle_hours=idle / HOUR,
        returned_hours=back / HOUR,
        held_passes=held,
        by_fault=by_fault,
    )
