"""Where the time of starts goes, and what many of them say together."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub_ext.cluster.events import read_event
from hub_ext.cluster.nodes import read_node
from hub_ext.cluster.phases import Phase, Split, note, split
from hub_ext.cluster.pods import read_pod
from hub_ext.cluster.pulls import read_pull, read_span
from hub_ext.cluster.starts import (
    Outcome,
    StartRecord,
    Subject,
    percentile,
    record,
    summarize,
    usual,
)
from hub_ext.errors import BadValueError
from tests.unit.cluster.objects import (
    IMAGE,
    NOW,
    at,
    condition,
    container_status,
    make_event,
    make_node,
    make_pod,
)

PULLED = f'Successfully pulled image "{IMAGE}" in 40s (50s including waiting). Image size: 8000000000 bytes.'
PRESENT = f'Container image "{IMAGE}" already present on machine and can be accessed by the pod'


def events(*made: dict[str, Any]) -> list[Any]:
    return [read_event(one, NOW + timedelta(seconds=index)) for index, one in enumerate(made)]


def a_start(started: float = 120, **more: Any) -> dict[str, Any]:
    """A pod that was placed after ten seconds and whose notebook runs."""
    running = container_status(running={"startedAt": at(started)})
    status = {
        "conditions": [condition("PodScheduled", seconds=10), condition("Initialized", seconds=12)],
        "containerStatuses": [running],
        **more,
    }
    return make_pod(node="n1", phase="Running", status=status)


def seconds(made: Split) -> dict[str, float]:
    return {phase.value: part.total_seconds() for phase, part in made.parts.items()}


def taken_apart(pod: dict[str, Any], *made: dict[str, Any], end: float = 130, **more: Any) -> Split:
    return split(
        read_pod(pod),
        events(*made),
        requested=NOW - timedelta(seconds=0.4),
        ended=NOW + timedelta(seconds=end),
        **more,
    )


def test_a_cold_start() -> None:
    made = taken_apart(
        a_start(),
        make_event("Scheduled", seconds=10, exact=True),
        make_event("SuccessfulAttachVolume", seconds=18),
        make_event("Pulling", seconds=20, container="notebook"),
        make_event("Pulled", PULLED, seconds=70, container="notebook"),
    )
    assert seconds(made) == {
        "request": 0.4,
        "queue": 10,
        "volume": 10,
        "pull": 50,
        "start": 50,
        "warm-up": 10,
    }
    assert (made.warm, made.skewed, made.total.total_seconds()) == (False, 0, 130.4)
    (pull,) = made.pulls
    assert (pull.took, pull.waited, pull.size_bytes) == (
        timedelta(seconds=40),
        timedelta(seconds=10),
        8_000_000_000,
    )


def test_a_warm_start() -> None:
    present = make_event("Pulled", PRESENT, seconds=12, container="notebook")
    made = taken_apart(a_start(started=13), present, end=20)
    assert made.warm is True
    assert "pull" not in seconds(made)
    assert seconds(made) == {"request": 0.4, "queue": 10, "volume": 2, "start": 1, "warm-up": 7}


def test_without_events_nothing_is_guessed() -> None:
    made = taken_apart(a_start())
    assert made.warm is None
    assert seconds(made) == {"request": 0.4, "queue": 10, "start": 110, "warm-up": 10}
    nothing = taken_apart(make_pod())
    assert seconds(nothing) == {"request": 0.4, "unattributed": 130}


def test_a_pull_that_failed_first_is_not_warm_and_may_lack_its_end() -> None:
    pulling = make_event("Pulling", seconds=20, container="notebook")
    dropped = taken_apart(a_start(), pulling)
    assert (dropped.warm, seconds(dropped)["pull"]) == (False, 100), "until the container runs"
    again = make_event("Pulled", PRESENT, seconds=90, container="notebook")
    retried = taken_apart(a_start(), pulling, again)
    assert (retried.warm, seconds(retried)["pull"]) == (False, 70)


def test_a_node_that_is_added_is_told_or_inferred() -> None:
    told = taken_apart(a_start(), make_event("TriggeredScaleUp", seconds=4))
    assert (seconds(told)["queue"], seconds(told)["scale-up"]) == (4, 6)
    young = make_node()
    young["metadata"]["creationTimestamp"] = at(3)
    inferred = taken_apart(a_start(), node=read_node(young))
    assert (seconds(inferred)["queue"], seconds(inferred)["scale-up"]) == (3, 7)
    assert "scale-up" not in seconds(taken_apart(a_start(), node=read_node(make_node())))


def test_the_sandbox_condition_counts_only_where_it_means_what_it_says() -> None:
    conditions = [
        condition("PodScheduled", seconds=10),
        condition("PodReadyToStartContainers", seconds=14),
    ]
    pulling = make_event("Pulling", seconds=20, container="notebook")
    old, new = make_node(), make_node()
    old["status"]["nodeInfo"] = {"kubeletVersion": "v1.35.4"}
    new["status"]["nodeInfo"] = {"kubeletVersion": "v1.36.3+k3s1"}
    pod = a_start(conditions=conditions)
    assert seconds(taken_apart(pod, pulling, node=read_node(new)))["volume"] == 4
    assert seconds(taken_apart(pod, pulling, node=read_node(old)))["volume"] == 10
    assert seconds(taken_apart(pod, pulling))["volume"] == 10


def test_init_containers_take_their_time_before_the_image() -> None:
    pod = a_start()
    pod["spec"]["initContainers"] = [{"name": "fetch"}, {"name": "log", "restartPolicy": "Always"}]
    done = {"terminated": {"exitCode": 0, "startedAt": at(15), "finishedAt": at(45)}}
    log = {"running": {"startedAt": at(46)}}
    pod["status"]["conditions"][1] = condition("Initialized", seconds=46)
    pod["status"]["initContainerStatuses"] = [
        container_status("fetch", **done),
        container_status("log", **log),
    ]
    made = seconds(taken_apart(pod))
    assert made["init"] == 31


def test_clocks_that_differ_are_cut_and_counted() -> None:
    early = taken_apart(
        a_start(), make_event("Pulling", seconds=90, container="notebook"),
        make_event("Pulled", PULLED, seconds=80, container="notebook"),
    )  # fmt: skip
    assert early.skewed >= 1
    assert all(part > 0 for part in seconds(early).values())


def test_what_flips_keeps_its_first_time() -> None:
    pod = read_pod(a_start(started=20))
    first = note(pod)
    again = read_pod(a_start(started=500, conditions=[condition("PodScheduled", seconds=400)]))
    kept = note(again, first)
    assert kept.first["PodScheduled"] == NOW + timedelta(seconds=10)
    assert kept.first["started/notebook"] == NOW + timedelta(seconds=20)
    other = read_pod({**a_start(started=500), "metadata": make_pod(uid="pod-2")["metadata"]})
    assert note(other, first).first["started/notebook"] == NOW + timedelta(seconds=500)


MOMENTS = st.integers(min_value=-5, max_value=200)


@given(
    scheduled=MOMENTS,
    pulling=MOMENTS,
    pulled=MOMENTS,
    started=MOMENTS,
    end=st.integers(0, 200),
    scale=MOMENTS,
)
def test_the_parts_add_up_whatever_the_clocks_say(
    *, scheduled: int, pulling: int, pulled: int, started: int, end: int, scale: int
) -> None:
    pod = a_start(started=started, conditions=[condition("PodScheduled", seconds=scheduled)])
    made = taken_apart(
        pod,
        make_event("TriggeredScaleUp", seconds=scale),
        make_event("Pulling", seconds=pulling, container="notebook"),
        make_event("Pulled", PULLED, seconds=pulled, container="notebook"),
        end=end,
    )
    assert sum(made.parts.values(), timedelta(0)) == made.total
    assert all(part > timedelta(0) for part in made.parts.values())


# Messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "took", "waited", "size"),
    [
        ('Successfully pulled image "x" in 49.18s', 49.18, None, None),
        ('Successfully pulled image "x" in 890ms (1m21.28s including waiting)', 0.89, 80.39, None),
        (
            'Successfully pulled image "x" in 1m2s (1m2s including waiting). Image size: 225073269 bytes.',
            62,
            0,
            225073269,
        ),
    ],
)
def test_three_forms_of_a_pull(message: str, took: float, waited: float | None, size: int | None) -> None:
    pull = read_pull("notebook", events(make_event("Pulled", message, container="notebook")))
    assert pull.took == timedelta(seconds=took)
    assert (pull.waited and round(pull.waited.total_seconds(), 2)) == (waited or pull.waited)
    assert pull.size_bytes == size
    assert pull.warm is False


def test_older_words_for_an_image_that_is_there() -> None:
    message = 'Container image "x" already present on machine'
    assert read_pull("notebook", events(make_event("Pulled", message, container="notebook"))).warm is True
    assert read_pull("other", events(make_event("Pulled", message, container="notebook"))).warm is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1h2m3.5s", 3723.5), ("890ms", 0.89), ("15µs", 0.000015), ("", None), ("soon", None), ("3", None)],
)
def test_durations_of_go(text: str, expected: float | None) -> None:
    assert read_span(text) == (None if expected is None else timedelta(seconds=expected))


# Many starts ------------------------------------------------------------------------------------------------


def a_record(
    total: float, outcome: Outcome = Outcome.STARTED, reason: str = "", *, warm: bool = False, **phases: float
) -> StartRecord:
    return StartRecord(
        at=NOW,
        profile="gpu",
        version=3,
        pool="h200",
        outcome=outcome,
        reason=reason,
        seconds=total,
        phases={name.replace("_", "-"): value for name, value in phases.items()},
        warm=warm,
    )


def test_failures_count_as_longer_than_all_that_succeeded() -> None:
    records = [a_record(10.0 * number) for number in range(1, 9)]
    records += [a_record(300, Outcome.TIMED_OUT), a_record(5, Outcome.FAILED, "image-not-found")]
    records.append(a_record(3, Outcome.CANCELLED))
    (found,) = summarize(records)
    assert (found.number, found.failed, found.p50, found.p95) == (10, 2, 50, None)
    assert found.reasons == {"image-not-found": 1, "timed-out": 1}


def test_summaries_say_where_the_time_goes() -> None:
    records = [a_record(100, pull=80, warm_up=20), a_record(30, warm=True, warm_up=30), a_record(70, pull=50)]
    (found,) = summarize(records)
    assert found.phases == {"pull": (50, 80), "warm-up": (20, 30)}
    assert (found.longest, found.warm) == ("pull", 1)
    assert found.as_dict()["phases"]["pull"] == {"p50": 50, "p95": 80}
    assert summarize([]) == ()
    (none,) = summarize([a_record(1, Outcome.FAILED)])
    assert (none.p50, none.longest) == (None, "")


@pytest.mark.parametrize(
    ("share", "of", "expected"), [(0.5, 4, 2), (0.95, 4, 4), (0.95, 5, None), (0.5, 1, 1), (0.0, 4, 1)]
)
def test_nearest_rank(share: float, of: int, expected: float | None) -> None:
    assert percentile([1, 2, 3, 4], share, of=of) == expected


def test_usual_needs_some_starts_and_only_cold_ones_for_a_pull() -> None:
    few = [a_record(60, pull=40), a_record(80, pull=60)]
    assert usual(few, profile="gpu", pool="h200").pull is None
    known = usual([*few, a_record(70, pull=50), a_record(5, warm=True)], profile="gpu", pool="h200")
    assert known.pull == timedelta(seconds=50)
    assert known.scale_up is None
    assert usual(few * 2, profile="cpu", pool="h200").pull is None


def test_each_image_has_its_own_size_and_time() -> None:
    def fetched(image: str, size: int | None, pull: float) -> StartRecord:
        return replace(a_record(60, pull=pull), image=image, pull_bytes=size)

    records = [fetched("torch", size, 40) for size in (7, 8, None)] + [fetched("jax", 9, 90)] * 3
    torch, jax, other = (
        usual(records, profile="gpu", pool="h200", image=image) for image in ("torch", "jax", "other")
    )
    assert (torch.size, jax.size, other.size) == (8, 9, None)
    assert (torch.pull, jax.pull, other.pull) == (timedelta(seconds=40), timedelta(seconds=90), None)
    assert usual(records, profile="gpu", pool="h200").size is None


def test_a_record_is_a_line_and_back() -> None:
    made = taken_apart(
        a_start(),
        make_event("Pulling", seconds=20, container="notebook"),
        make_event("Pulled", PULLED, seconds=70, container="notebook"),
    )
    subject = Subject(profile="gpu", version=3, pool="h200", image="torch")
    one = record(made, subject, at=NOW, outcome=Outcome.STARTED)
    assert one.pull_bytes == 8_000_000_000
    assert one.pull_wait_seconds == 10
    assert sum(one.phases.values()) == pytest.approx(one.seconds)
    assert StartRecord.from_dict(one.as_dict()) == one
    assert set(one.phases) <= {phase.value for phase in Phase}


@pytest.mark.parametrize(
    "line", [{}, {"format": 2}, {"format": 1}, {"format": 1, "at": "yesterday", "outcome": "started"}]
)
def test_other_lines_are_refused(line: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match="record of a start"):
        StartRecord.from_dict(line)
