"""What single sources say, and what they come to together."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hub_ext.protocol import Attribution
from services.idle_culler.agent_signal import agent_signals
from services.idle_culler.combine import combine
from services.idle_culler.facts import Facts, HubFacts, KernelFacts, TerminalFacts, Work
from services.idle_culler.gpu_signal import gpu_signal, judge_gpu
from services.idle_culler.limits import Limits
from services.idle_culler.policy import Thresholds
from services.idle_culler.reasons import TEXTS, Reason, sentence
from services.idle_culler.signal import Signal, Value
from services.idle_culler.signals import cpu_signal, hub_signal, read_signals
from tests.fakes.culler import NOON, SLICE, agent, cpu, hub, idle_facts, metrics, pod, reading

BUSY, IDLE, UNKNOWN = Value.BUSY, Value.IDLE, Value.UNKNOWN
THRESHOLDS, LIMITS = Thresholds(), Limits(idle=5400.0)


def ask(facts: Facts, limits: Limits = LIMITS) -> tuple[Value, Reason]:
    state = combine(read_signals(facts, limits, THRESHOLDS), limits)
    return state.value, state.reason


def work(**fields: object) -> Signal:
    return agent_signals(idle_facts(NOON, agent=agent(NOON, **fields)), LIMITS, THRESHOLDS)[0]


# --- one card


@pytest.mark.parametrize(
    ("found", "value", "reason"),
    [
        (reading(0.0, 0.0), IDLE, Reason.GPU_QUIET),
        (reading(0.0), IDLE, Reason.GPU_QUIET),
        (reading(None, 0.0), IDLE, Reason.GPU_QUIET),
        (reading(0.019), IDLE, Reason.GPU_QUIET),
        (reading(0.02), BUSY, Reason.GPU_ACTIVE),
        (reading(0.9, coverage=0.1, age_seconds=900.0), BUSY, Reason.GPU_ACTIVE),
        (reading(0.0, coverage=0.89), UNKNOWN, Reason.GPU_GAPS),
        (reading(0.0, coverage=None), UNKNOWN, Reason.GPU_GAPS),
        (reading(0.0, age_seconds=121.0), UNKNOWN, Reason.GPU_STALE),
        (reading(0.0, age_seconds=None), UNKNOWN, Reason.GPU_STALE),
        (reading(None), UNKNOWN, Reason.NO_GPU_READINGS),
        (reading(0.0, 0.99), UNKNOWN, Reason.METERS_DISAGREE),
        (reading(0.99, 0.0), UNKNOWN, Reason.METERS_DISAGREE),
        (reading(0.3, 0.99), BUSY, Reason.GPU_ACTIVE),
        (reading(0.0, 0.3), BUSY, Reason.GPU_ACTIVE),
        (reading(0.0, 0.0, unmapped=True), UNKNOWN, Reason.NOT_ATTRIBUTED),
        (reading(0.95, 0.0, shared=True), IDLE, Reason.GPU_QUIET),
        (reading(0.95, 0.4, shared=True), BUSY, Reason.GPU_ACTIVE),
        (reading(0.95, 0.0, shared=True, unmapped=True), UNKNOWN, Reason.NOT_ATTRIBUTED),
        # The plain utilization says nothing about slices.
        (reading(0.8, 0.0, slice="7"), BUSY, Reason.GPU_ACTIVE),
        (reading(None, 0.0, slice="7"), UNKNOWN, Reason.NO_GPU_READINGS),
        (reading(0.0, 0.99, slice="7"), IDLE, Reason.GPU_QUIET),
    ],
)
def test_a_card_is_judged_by_its_largest_value_and_by_what_is_missing(found, value, reason) -> None:
    assert judge_gpu(found, THRESHOLDS) == (value, reason)


@pytest.mark.parametrize(
    ("readings", "value", "reason", "subject"),
    [
        ((reading(0.0), reading(0.0)), IDLE, Reason.GPU_QUIET, "2 of 2"),
        ((reading(0.0), reading(0.4)), BUSY, Reason.GPU_ACTIVE, "1 of 2"),
        ((reading(0.0), reading(0.0, coverage=0.2)), UNKNOWN, Reason.GPU_GAPS, "1 of 2"),
        ((reading(0.4), reading(None)), BUSY, Reason.GPU_ACTIVE, "1 of 2"),
        ((reading(0.0),), UNKNOWN, Reason.GPUS_MISSING, "1 of 2"),
        ((), UNKNOWN, Reason.NO_GPU_READINGS, "0 of 2"),
    ],
)
def test_every_gpu_of_a_pod_has_to_be_idle(readings, value, reason, subject) -> None:
    signal = gpu_signal(idle_facts(NOON, pod=pod(2), gpu=metrics(NOON, *readings)), THRESHOLDS)
    if reason is Reason.GPUS_MISSING or not readings:
        assert (signal.value, signal.reason) == (value, reason)
    else:
        assert (signal.value, signal.reason, signal.subject) == (value, reason, subject)


@pytest.mark.parametrize(
    ("gpu_use", "value"),
    [
        ({}, UNKNOWN),
        ({"GPU-a": 0.0}, IDLE),
        ({"GPU-a": 0.0, "GPU-b": None}, UNKNOWN),
        ({f"GPU-{n}": 0.0 for n in range(9)}, UNKNOWN),
    ],
    ids=["not-told", "one-card", "two-cards", "made-up"],
)
def test_two_shares_may_be_of_two_cards_of_which_one_is_silent(gpu_use, value) -> None:
    facts = idle_facts(
        NOON,
        pod=pod(2, sharing="time-slicing"),
        gpu=metrics(NOON, reading(None, 0.0, shared=True)),
        agent=agent(NOON, gpu_use=gpu_use),
    )
    assert gpu_signal(facts, THRESHOLDS).value is value


@pytest.mark.parametrize("resource", [SLICE, "nvidia.com/gpu"])
def test_the_utilization_of_a_slice_says_nothing_though_the_reading_does_not_say_of_which(resource) -> None:
    """It reads zero whatever the slice does."""
    held = pod(1, resource, sharing="mig")
    silent = idle_facts(NOON, pod=held, gpu=metrics(NOON, reading(None, 0.0)))
    assert gpu_signal(silent, THRESHOLDS).reason is Reason.NO_GPU_READINGS
    measured = idle_facts(NOON, pod=held, gpu=metrics(NOON, reading(0.0, 0.0)))
    assert gpu_signal(measured, THRESHOLDS).value is IDLE


def test_a_gpu_that_nobody_asked_for_is_looked_at_where_it_is_measured() -> None:
    """By a resource claim, or by an image that shows all cards of its node."""
    with_one = idle_facts(NOON, gpus=0, agent=None, gpu=metrics(NOON, reading(0.9)))
    assert ask(with_one) == (BUSY, Reason.GPU_ACTIVE)
    resting = idle_facts(NOON, gpus=0, agent=None, gpu=metrics(NOON, reading(0.0)))
    assert ask(resting) == (IDLE, Reason.GPU_IDLE)
    without = idle_facts(NOON, gpus=0, agent=None, gpu=metrics(NOON))
    assert ask(without) == (IDLE, Reason.IDLE)


def test_less_than_nothing_is_no_measurement() -> None:
    assert judge_gpu(reading(-1.0), THRESHOLDS) == (UNKNOWN, Reason.NO_GPU_READINGS)


def test_a_sample_from_the_future_is_no_fresh_one() -> None:
    assert judge_gpu(reading(0.0, age_seconds=-600.0), THRESHOLDS) == (UNKNOWN, Reason.GPU_STALE)


def test_readings_of_the_pod_before_count_for_nothing() -> None:
    facts = idle_facts(NOON, hub=hub(NOON, started=NOON - timedelta(minutes=3)))
    signal = gpu_signal(facts, THRESHOLDS)
    assert signal.since == NOON - timedelta(minutes=3)


def test_old_answers_of_prometheus_are_unknown() -> None:
    facts = idle_facts(NOON, gpu=metrics(NOON - timedelta(minutes=3), reading()))
    assert gpu_signal(facts, THRESHOLDS).reason is Reason.NO_METRICS


# --- the hub and the processors


@pytest.mark.parametrize(
    ("last", "value", "reason"),
    [
        (NOON - timedelta(minutes=9), BUSY, Reason.HUB_ACTIVE),
        (NOON - timedelta(minutes=11), IDLE, Reason.HUB_QUIET),
        (NOON + timedelta(minutes=50), BUSY, Reason.CLOCK_AHEAD),
        (None, UNKNOWN, Reason.NO_ACTIVITY_KNOWN),
    ],
)
def test_the_hubs_activity(last: datetime | None, value: Value, reason: Reason) -> None:
    signal = hub_signal(idle_facts(NOON, hub=HubFacts(started=NOON, last_activity=last)), THRESHOLDS)
    assert (signal.value, signal.reason) == (value, reason)


@pytest.mark.parametrize(
    ("found", "value", "reason"),
    [
        (cpu(NOON, 0.14), IDLE, Reason.CPU_QUIET),
        (cpu(NOON, 0.15), BUSY, Reason.CPU_ACTIVE),
        (cpu(NOON, 0.9, coverage=0.1), BUSY, Reason.CPU_ACTIVE),
        (cpu(NOON, 0.0, coverage=0.5), UNKNOWN, Reason.CPU_GAPS),
        (cpu(NOON, None), UNKNOWN, Reason.NO_CPU_READINGS),
        (cpu(NOON - timedelta(minutes=3)), UNKNOWN, Reason.NO_CPU_READINGS),
        (None, UNKNOWN, Reason.NO_CPU_READINGS),
    ],
)
def test_the_processors(found, value, reason) -> None:
    signal = cpu_signal(idle_facts(NOON, cpu=found), THRESHOLDS)
    assert (signal.value, signal.reason) == (value, reason)


# --- the workspace


def test_a_silent_thread_under_an_idle_kernel_is_work() -> None:
    signal = work(work=(Work(origin="kernel", owner="k1", command="python", cpu=0.93),))
    assert (signal.value, signal.reason) == (BUSY, Reason.KERNEL_RUNS)


def test_a_detached_process_is_work() -> None:
    signal = work(work=(Work(origin="detached", owner="77", command="train.py", cpu=0.5),))
    assert (signal.value, signal.reason, signal.subject) == (BUSY, Reason.PROCESS_RUNS, "train.py")


def test_who_uses_the_gpu_is_named() -> None:
    kernels = (KernelFacts(id="k1", state="idle", state_seconds=9000.0, name="train.ipynb"),)
    uses = (
        Work(origin="detached", owner="7", command="nvidia-monitor", cpu=0.9, gpu=0.0),
        Work(origin="kernel", owner="k1", command="python", gpu=0.97),
    )
    signal = work(gpu_use={"GPU-a": 0.97}, kernels=kernels, work=uses)
    assert (signal.reason, signal.subject) == (Reason.GPU_ACTIVE, "train.ipynb")
    assert work(gpu_use={"GPU-a": 0.97}, work=()).subject == ""


def test_who_only_holds_memory_of_the_gpu_is_named_and_is_no_work() -> None:
    kernels = (KernelFacts(id="k1", state="idle", state_seconds=9000.0, name="loaded.ipynb"),)
    uses = (
        Work(origin="detached", owner="7", command="python", gpu=0.0, gpu_memory=2**30),
        Work(origin="kernel", owner="k1", command="python", gpu=0.0, gpu_memory=70 * 2**30),
    )
    signal = work(kernels=kernels, work=uses)
    assert (signal.value, signal.reason, signal.subject) == (IDLE, Reason.MEMORY_HELD, "loaded.ipynb")
    assert signal.since == NOON - timedelta(seconds=30)


def test_a_job_in_the_background_of_a_terminal_is_said_to_be_there() -> None:
    signal = work(work=(Work(origin="terminal", owner="1", command="train", cpu=0.9, background=True),))
    assert (signal.value, signal.reason, signal.subject) == (BUSY, Reason.BACKGROUND_RUNS, "train")


def test_reading_and_writing_is_work() -> None:
    rsync = Work(origin="terminal", owner="1", command="rsync", cpu=0.01, io_rate=2e6)
    assert work(work=(rsync,)).reason is Reason.TERMINAL_RUNS


@pytest.mark.parametrize(
    ("fields", "value", "reason"),
    [
        ({"state": "busy", "state_seconds": 60.0}, BUSY, Reason.KERNEL_RUNS),
        ({"state": "busy", "state_seconds": None}, BUSY, Reason.KERNEL_RUNS),
        ({"state": "busy", "state_seconds": 7300.0}, IDLE, Reason.KERNEL_WAITS),
        ({"state": "busy", "state_seconds": 60.0, "waits_for_input": True}, IDLE, Reason.KERNEL_WAITS),
        ({"state": "starting", "state_seconds": 60.0}, BUSY, Reason.KERNEL_RUNS),
        ({"state": "dead", "state_seconds": 60.0}, IDLE, Reason.KERNEL_WAITS),
        ({"state": "idle", "state_seconds": 10.0}, BUSY, Reason.KERNEL_RUNS),
        ({"state": "idle", "state_seconds": 31.0}, IDLE, Reason.NOTHING_RUNS),
        ({"state": "idle", "state_seconds": None}, IDLE, Reason.NOTHING_RUNS),
    ],
)
def test_the_state_of_a_kernel_is_borne_out_by_its_time(fields, value, reason) -> None:
    signal = work(kernels=(KernelFacts(**fields),))
    assert (signal.value, signal.reason) == (value, reason)


@pytest.mark.parametrize(
    ("foreground", "quiet", "value"),
    [("python", 60.0, BUSY), ("ssh", 7300.0, IDLE), ("", 10.0, BUSY), ("", 60.0, IDLE), ("", None, IDLE)],
)
def test_terminals(foreground: str, quiet: float | None, value: Value) -> None:
    assert work(terminals=(TerminalFacts(foreground=foreground, quiet_seconds=quiet),)).value is value


def test_a_gpu_that_the_workspace_cannot_attribute_is_not_counted() -> None:
    assert work(gpu_use={"GPU-a": 0.97}).reason is Reason.GPU_ACTIVE
    assert work(gpu_use={"GPU-a": 0.97}, attribution=Attribution.UNTRUSTED).value is IDLE


@pytest.mark.parametrize("fields", [{"complete": False}, {"window_seconds": 0.0}])
def test_a_report_that_is_not_whole_is_unknown_but_may_show_work(fields) -> None:
    assert work(**fields).reason is Reason.AGENT_INCOMPLETE
    assert work(**fields, work=(Work(origin="detached", cpu=1.0),)).value is BUSY


def test_silence_is_unknown_never_rest() -> None:
    facts = idle_facts(NOON, agent=agent(NOON - timedelta(minutes=3)))
    assert {signal.reason for signal in agent_signals(facts, LIMITS, THRESHOLDS)} == {Reason.AGENT_SILENT}


# --- together


def test_idle_by_all_signals() -> None:
    assert ask(idle_facts(NOON)) == (IDLE, Reason.GPU_IDLE)
    assert ask(idle_facts(NOON, gpus=0)) == (IDLE, Reason.IDLE)


def test_any_sign_of_work_keeps() -> None:
    assert ask(idle_facts(NOON, cpu=cpu(NOON, 0.5)))[0] is BUSY
    assert ask(idle_facts(NOON, gpu=metrics(NOON, reading(0.5))))[0] is BUSY
    assert ask(idle_facts(NOON, agent=agent(NOON, input_seconds=5.0)))[0] is BUSY


def test_metrics_stand_in_for_a_workspace_that_does_not_report() -> None:
    facts = idle_facts(NOON, agent=None)
    assert ask(facts) == (IDLE, Reason.GPU_IDLE)
    assert ask(facts, Limits(metrics_stand_in=False)) == (UNKNOWN, Reason.NO_AGENT)
    assert ask(idle_facts(NOON, agent=None, cpu=None)) == (UNKNOWN, Reason.NO_AGENT)
    assert ask(idle_facts(NOON, agent=None, hub=hub(NOON, quiet=timedelta(0))))[0] is BUSY


def test_the_hub_alone_stands_in_where_the_policy_says_so() -> None:
    limits = Limits(hub_stands_in=True)
    assert ask(idle_facts(NOON, gpus=0, agent=None, cpu=None), limits) == (IDLE, Reason.IDLE)
    assert ask(idle_facts(NOON, agent=None, cpu=None, gpu=None), limits) == (UNKNOWN, Reason.NO_METRICS)
    silent = idle_facts(NOON, gpus=0, agent=agent(NOON - timedelta(hours=1)), cpu=None)
    assert ask(silent, limits) == (UNKNOWN, Reason.AGENT_SILENT)


def test_a_pod_that_is_not_found_may_hold_a_gpu() -> None:
    assert ask(idle_facts(NOON, pod=None)) == (UNKNOWN, Reason.NO_POD)


def test_missing_metrics_of_a_gpu_are_unknown_whatever_the_workspace_says() -> None:
    assert ask(idle_facts(NOON, gpu=None)) == (UNKNOWN, Reason.NO_METRICS)


@pytest.mark.parametrize("ignore", [True, False])
def test_an_open_page_counts_only_where_the_policy_says_so(ignore: bool) -> None:
    tab = agent(NOON, unsaved=0, input_seconds=9000.0)
    facts = idle_facts(NOON, agent=tab, hub=hub(NOON, quiet=timedelta(seconds=40)))
    assert ask(facts, Limits(ignore_open_tabs=ignore))[0] is (IDLE if ignore else BUSY)


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_sentence(reason: Reason) -> None:
    assert sentence(reason).endswith(".")
    assert "{" not in sentence(reason, "{of}").replace("{of}", "")
    assert set(TEXTS) == set(Reason)


def test_what_users_named_is_put_in_as_it_is() -> None:
    assert sentence(Reason.PROCESS_RUNS, "{of} %s {0}") == "A process is at work ({of} %s {0})."


def test_slices_are_counted_like_cards() -> None:
    facts = idle_facts(
        NOON, pod=pod(2, SLICE), gpu=metrics(NOON, reading(0.0, slice="7"), reading(0.0, slice="8"))
    )
    assert gpu_signal(facts, THRESHOLDS).value is IDLE
