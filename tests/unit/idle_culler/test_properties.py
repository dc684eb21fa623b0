"""What holds whatever happens: drawn histories and drawn facts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.protocol import Limit
from services.idle_culler.breaker import Pulse, check
from services.idle_culler.combine import combine
from services.idle_culler.facts import FACTS, Facts, KernelFacts, Work
from services.idle_culler.limits import Limits
from services.idle_culler.policy import Breaker, Thresholds
from services.idle_culler.signal import Source, Value
from services.idle_culler.signals import read_signals
from services.idle_culler.track import TRACKS
from services.idle_culler.verdict import Action, Pace
from tests.fakes.culler import NOON, Watch, agent, cpu, hub, idle_facts, metrics, reading

LIMIT, EVERY = 3600.0, timedelta(seconds=160)
GAP = 2.5 * EVERY.total_seconds()
BUSY_WORK = (Work(origin="detached", owner="7", cpu=1.0),)


def facts_of(value: Value, at: Any) -> Facts:
    match value:
        case Value.BUSY:
            return idle_facts(at, agent=agent(at, work=BUSY_WORK))
        case Value.IDLE:
            return idle_facts(at)
    return idle_facts(at, gpu=None)


runs = st.tuples(st.sampled_from([*Value, Value.IDLE, Value.IDLE]), st.integers(1, 30), st.floats(30, 450))
looks = st.lists(runs, max_size=8).map(
    lambda drawn: [(gap, value) for value, times, gap in drawn for _ in range(times)]
)
"""Histories: so many looks in a row that find the same, so many seconds apart."""


@settings(max_examples=80, deadline=None)
@given(looks)
def test_a_stop_is_always_preceded_by_as_much_idleness_as_the_limit_says(history: Any) -> None:
    watch = Watch(limits=Limits(idle=LIMIT, warn_before=(900.0, 300.0)), pace=Pace(every=EVERY))
    idle, before = 0.0, None
    warned: list[float] = []
    for gap, value in history:
        watch.now += timedelta(seconds=gap)
        if value is Value.BUSY:
            idle, warned = 0.0, []
        elif value is Value.IDLE and before is Value.IDLE and gap <= GAP:
            idle += gap
        before = value
        verdict = watch.look(facts_of(value, watch.now))
        if verdict.action is Action.WARN:
            warned.append(idle)
        if verdict.action is Action.STOP:
            # The agent vouches for its own last half minute, once.
            assert idle + 30 >= LIMIT
            assert value is Value.IDLE
            assert len(warned) == 2
            assert idle - warned[0] >= 900
            assert idle - warned[1] >= 300
            return


@settings(max_examples=60, deadline=None)
@given(looks)
def test_a_session_never_ends_before_its_time_nor_without_its_warnings(history: Any) -> None:
    limits = Limits(session=5 * 3600.0, warn_before=(900.0, 300.0))
    watch = Watch(limits=limits, pace=Pace(every=EVERY))
    started = NOON - timedelta(hours=4)
    warned: list[Any] = []
    for gap, value in history:
        watch.now += timedelta(seconds=gap)
        verdict = watch.look(facts_of(value, watch.now))
        if verdict.action is Action.WARN:
            warned.append(watch.now)
        if verdict.action is Action.STOP:
            assert watch.now - started >= timedelta(hours=5)
            leads = zip(warned, (900, 300), strict=True)
            assert all(watch.now - moment >= timedelta(seconds=lead) for moment, lead in leads)
            return


limits_of = st.builds(
    Limits,
    idle=st.sampled_from([900.0, 3600.0, 7200.0]),
    session=st.sampled_from([None, 4.5 * 3600.0, 6 * 3600.0]),
    warn_before=st.sampled_from([(900.0, 300.0), (300.0,), (1800.0, 600.0, 120.0)]),
)
changing = st.lists(st.tuples(runs, limits_of), max_size=6).map(
    lambda drawn: [(gap, value, limits) for (value, times, gap), limits in drawn for _ in range(times)]
)
"""Histories in which other limits hold from some moments on."""


@settings(max_examples=80, deadline=None)
@given(changing)
def test_no_stop_comes_sooner_than_its_last_warning_said_whatever_becomes_of_the_limits(history: Any) -> None:
    watch = Watch(pace=Pace(every=EVERY))
    promised: dict[Limit | None, Any] = {}
    for gap, value, watch.limits in history:
        watch.now += timedelta(seconds=gap)
        if value is Value.BUSY:
            promised.pop(Limit.IDLE, None)
        verdict = watch.look(facts_of(value, watch.now))
        if verdict.action is Action.WARN:
            promised[verdict.limit] = verdict.deadline
        if verdict.action is Action.STOP:
            assert watch.now >= promised[verdict.limit]
            return


maybe = st.one_of(st.none(), st.floats(0, 1))
readings = st.builds(
    reading,
    maybe,
    maybe,
    coverage=maybe,
    age_seconds=st.one_of(st.none(), st.floats(0, 400)),
    slice=st.sampled_from(["", "7"]),
    shared=st.booleans(),
    unmapped=st.booleans(),
)
agents = st.builds(
    lambda **fields: agent(NOON, **fields),
    work=st.sampled_from([(), BUSY_WORK]),
    complete=st.booleans(),
    window_seconds=st.sampled_from([0.0, 30.0]),
    input_seconds=st.one_of(st.none(), st.floats(0, 1e5)),
    kernels=st.lists(
        st.builds(
            KernelFacts,
            state=st.sampled_from(["idle", "busy", "dead"]),
            state_seconds=st.one_of(st.none(), st.floats(0, 1e5)),
        ),
        max_size=2,
    ).map(tuple),
)
drawn = st.builds(
    lambda found, said, cores, coverage, quiet, gpus: idle_facts(
        NOON,
        gpus=gpus,
        gpu=None if found is None else metrics(NOON, *found),
        agent=said,
        cpu=cpu(NOON, cores, coverage=coverage),
        hub=hub(NOON, quiet=timedelta(seconds=quiet)),
    ),
    st.one_of(st.none(), st.lists(readings, max_size=3)),
    st.one_of(st.none(), agents),
    maybe,
    st.floats(0, 1),
    st.floats(0, 1e5),
    st.integers(1, 3),
)
drawn_limits = st.builds(
    Limits, ignore_open_tabs=st.booleans(), metrics_stand_in=st.booleans(), hub_stands_in=st.booleans()
)


@settings(max_examples=150, deadline=None)
@given(drawn, drawn_limits, st.booleans())
def test_idleness_of_a_gpu_server_needs_two_sources_and_all_its_gpus(
    facts: Facts, limits: Limits, capped: bool
) -> None:
    signals = {one.source: one.value for one in read_signals(facts, limits, Thresholds())}
    state = combine(read_signals(facts, limits, Thresholds()), limits, capped=capped)
    if state.value is not Value.IDLE:
        return
    assert signals[Source.GPU] is Value.IDLE
    assert facts.gpu
    assert facts.pod
    assert len(facts.gpu.gpus) >= sum(facts.pod.devices.values())
    independent = {Source.AGENT, Source.CPU} if not limits.hub_stands_in else {*Source} - {Source.GPU}
    assert any(signals[source] is Value.IDLE for source in independent)
    if not capped:
        assert Value.BUSY not in {v for source, v in signals.items() if source is not Source.HUB}


@settings(max_examples=100, deadline=None)
@given(drawn)
def test_facts_are_read_as_they_were_written(facts: Facts) -> None:
    assert FACTS.validate_json(FACTS.dump_json(facts, by_alias=True)) == facts


@settings(max_examples=40, deadline=None)
@given(looks)
def test_what_is_remembered_is_read_as_it_was_written(history: Any) -> None:
    watch = Watch(limits=Limits(idle=LIMIT, session=5 * 3600.0), pace=Pace(every=EVERY))
    for gap, value in history:
        watch.now += timedelta(seconds=gap)
        watch.look(facts_of(value, watch.now))
    tracks = (watch.track,) if watch.track else ()
    assert TRACKS.validate_json(TRACKS.dump_json(tracks, by_alias=True)) == tracks


@given(
    st.integers(0, 500),
    st.integers(0, 500),
    st.integers(0, 500),
    st.lists(st.integers(0, 1200), max_size=200),
)
def test_the_breaker_never_lets_more_through_than_its_share(servers, due, unknown, ages) -> None:
    rules = Breaker()
    stopped = [NOON - timedelta(seconds=age) for age in ages]
    pulse = Pulse(servers=max(servers, due, unknown), idle_stops=due, unknown=unknown)
    for since in (None, NOON - timedelta(hours=2)):
        gate = check(pulse, rules, stopped=stopped, since=since, now=NOON)
        let_through = 0 if gate.reason else min(due, gate.allowance if gate.allowance is not None else due)
        of_late = sum(age < 600 for age in ages)
        if let_through:
            assert let_through + of_late <= max(rules.at_least, rules.share * (pulse.servers + of_late))
