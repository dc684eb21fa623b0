from __future__ import annotations

from pathlib import Path

import pytest

from tests.devcluster.build.errors import UnknownNameError
from tests.devcluster.build.plan import (
    LIMITS,
    Pool,
    Step,
    batches,
    bytes_needed,
    seconds_left,
    startable,
    steps_missing,
)


def step(name: str, *needs: str, pool: Pool = Pool.COMPILE, lane: str = "", seconds: float = 1) -> Step:
    return Step(
        name=name,
        target=Path("/cache") / name,
        make=lambda *_: None,
        needs=needs,
        pool=pool,
        lane=lane,
        seconds=seconds,
    )


def table(*steps: Step) -> dict[str, Step]:
    return {step.name: step for step in steps}


def missing(wanted: list[str], steps: dict[str, Step], *, there: tuple[str, ...] = ()) -> list[str]:
    found = steps_missing(wanted, steps, exists=lambda path: path.name in there)
    return [step.name for step in found]


STEPS = table(
    step("sources", pool=Pool.DOWNLOAD, seconds=10),
    step("server", "sources", seconds=200),
    step("client", "sources", seconds=30),
    step("image", "server", pool=Pool.IMAGE),
    step("other", seconds=50),
)


def test_what_is_asked_for_comes_with_all_it_needs_and_nothing_else() -> None:
    assert missing(["image"], STEPS) == ["sources", "server", "image"]


def test_what_is_there_needs_nothing_even_if_its_sources_are_gone() -> None:
    assert missing(["image"], STEPS, there=("image",)) == []
    assert missing(["image"], STEPS, there=("server",)) == ["image"]


def test_the_longest_chain_comes_first() -> None:
    assert missing(["other", "client", "image"], STEPS) == ["sources", "server", "other", "client", "image"]


def test_a_download_is_as_urgent_as_all_that_follows_one_after_another() -> None:
    steps = table(
        step("many", pool=Pool.DOWNLOAD),
        *(step(f"small{n}", "many", lane="many", seconds=30) for n in range(4)),
        step("one", pool=Pool.DOWNLOAD),
        step("big", "one", lane="one", seconds=100),
    )
    assert missing(list(steps), steps)[:2] == ["many", "one"]


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(UnknownNameError, match="nothing called 'sever' can be built; did you mean 'server'"):
        steps_missing(["sever"], STEPS)


def test_nothing_starts_before_what_it_needs_is_finished() -> None:
    sources, server, other = STEPS["sources"], STEPS["server"], STEPS["other"]
    assert startable([server, sources, other], []) == [sources, other]
    assert startable([server], [sources]) == []
    assert startable([server], []) == [server]


def test_no_two_steps_of_one_lane_run_together() -> None:
    first, second = step("a", lane="module"), step("b", lane="module")
    assert startable([first, second], []) == [first]
    assert startable([second], [first]) == []


def test_no_more_steps_of_a_pool_run_than_its_limit() -> None:
    steps = [step(str(n)) for n in range(5)]
    limit = LIMITS[Pool.COMPILE]
    assert startable(steps, []) == steps[:limit]
    assert startable(steps[1:], steps[:1]) == steps[1:limit]
    download = step("d", pool=Pool.DOWNLOAD)
    assert startable([*steps[limit:], download], steps[:limit]) == [download]


def names(batched: list[list[Step]]) -> list[list[str]]:
    return [[step.name for step in batch] for batch in batched]


def test_what_fits_is_one_batch_in_the_given_order() -> None:
    steps = list(STEPS.values())
    assert batches(steps, budget=bytes_needed(steps)) == [steps]
    assert batches([]) == []


def test_what_does_not_fit_is_split_where_nothing_is_shared() -> None:
    steps = [
        *(step("mod a", pool=Pool.DOWNLOAD), step("mod b", pool=Pool.DOWNLOAD)),
        *(step("a1", "mod a", seconds=50), step("b1", "mod b", seconds=40), step("a2", "mod a", seconds=30)),
        *(step("c1", lane="c", seconds=20), step("c2", lane="c", seconds=10)),
    ]
    budget = bytes_needed([step("room", seconds=90)])
    assert names(batches(steps, budget=budget)) == [["mod a", "a1", "a2"], ["mod b", "b1", "c1", "c2"]]


def test_steps_that_a_third_ties_together_stay_together_even_above_the_budget() -> None:
    steps = [step("a", seconds=50), step("b", seconds=50), step("c", seconds=50), step("both", "a", "c")]
    assert names(batches(steps, budget=0)) == [["a", "c", "both"], ["b"]]


@pytest.mark.parametrize(
    ("done", "left", "elapsed", "expected"),
    [
        pytest.param(0, 300, 0, 300, id="at the start the table is believed"),
        pytest.param(100, 300, 100, 300, id="as fast as the table says"),
        pytest.param(600, 300, 1260, 600, id="a machine half as fast takes twice as long"),
        pytest.param(600, 0, 900, 0, id="nothing left"),
    ],
)
def test_the_estimate_learns_from_what_is_done(
    done: float, left: float, elapsed: float, expected: float
) -> None:
    assert seconds_left(done=done, left=left, elapsed=elapsed) == expected
