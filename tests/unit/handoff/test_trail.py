"""The audit trail is whole, wherever the service was killed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.job_handoff.store import StoreError
from services.job_handoff.trail import PATIENCE, Trail

from .conftest import ADA, World, body, start_for_test
from .test_desk import WRITES, killed_at

LATER = timedelta(minutes=2)
DAILY = {"cron": "0 6 * * *", "timeZone": "Europe/Berlin"}


async def entries(world: World, event: str = "submitted") -> list[dict[str, Any]]:
    found = await world.store.list("_audit")
    return [
        json.loads(await world.store.get(one.path) or b"")
        for one in found
        if one.path.endswith(f"-{event}.json")
    ]


async def complete(world: World, trail: Trail, *, after: timedelta = LATER) -> None:
    """What a pass of a service does that was started anew, so much later."""
    found = [seen.record for seen in await world.service.board.everyones()]
    await trail.complete(found, datetime.now(UTC) + after)


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("step", range(1, WRITES + 1))
async def test_whoever_has_a_run_has_one_entry_of_its_submission(world: World, step: int, done: bool) -> None:
    await killed_at(world, step, body(profile="ray"), done=done)
    for _ in range(2):  # two services, or two passes
        await complete(world, Trail(world.store))
    runs = world.kube.all_for_test("rayjobs")
    noted = await entries(world)
    assert [one["run"] for one in noted] == [one["metadata"]["name"] for one in runs]
    for one in noted:
        assert (one["actor"], one["user"], one["team"], one["entry"]) == ("ada", "ada", "nlp", "train.py")
        assert one["image"].endswith("2" * 64)


async def test_an_entry_that_came_late_has_the_time_of_the_submission(world: World) -> None:
    await killed_at(world, 7, body(profile="ray"), done=False)
    assert await entries(world) == []
    await complete(world, Trail(world.store))
    (noted,) = await entries(world)
    (seen,) = await world.service.board.everyones()
    assert noted["time"] == seen.record.submitted
    assert datetime.fromisoformat(noted["noted"]) - datetime.fromisoformat(noted["time"]) >= PATIENCE


async def test_what_was_noted_is_left_as_it_is_and_not_asked_for_again(world: World) -> None:
    await world.service.desk.submit("ada", body())
    before = await entries(world)
    trail = Trail(world.store)
    await complete(world, trail)
    assert await entries(world) == before
    assert "noted" not in before[0]

    async def never(path: str) -> int | None:
        raise AssertionError(path)

    trail._store = type("Asked", (), {"size": staticmethod(never)})()  # type: ignore[assignment]
    await complete(world, trail)


async def test_a_submission_that_is_under_way_notes_itself(world: World) -> None:
    await killed_at(world, 7, body(profile="ray"), done=False)
    await complete(world, Trail(world.store), after=timedelta())
    assert await entries(world) == []


async def test_a_run_that_is_canceled_at_once_leaves_its_entry(world: World) -> None:
    """The object goes with the cancellation: afterwards nothing would tell who had submitted it."""
    await killed_at(world, 7, body(profile="ray"), done=False)
    (seen,) = await world.service.board.mine(ADA)
    await world.service.actions.cancel(ADA, seen.record.id)
    assert world.kube.all_for_test("rayjobs") == []
    for event in ("submitted", "canceled", "ended"):
        assert [one["run"] for one in await entries(world, event)] == [seen.record.id]


async def test_a_schedule_is_noted_once_and_its_runs_are_not_submissions(world: World) -> None:
    run = (await world.service.desk.submit("ada", body(schedule=DAILY))).record.id
    start_for_test(world, run, f"{run}-29384756")
    await complete(world, Trail(world.store))
    assert [one["run"] for one in await entries(world)] == [run]


async def test_a_store_that_was_away_gets_what_it_missed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = world.service.core.store.put

    async def away(path: str, *arguments: Any, **more: Any) -> bool:
        if path.startswith("_audit"):
            raise StoreError("no answer")
        return await put(path, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(world.service.core.store, "put", away)
        run = (await world.service.desk.submit("ada", body())).record.id
        await complete(world, world.service.core.trail)
    assert await entries(world) == []
    await complete(world, world.service.core.trail)
    assert [one["run"] for one in await entries(world)] == [run]


async def test_a_store_that_does_not_answer_keeps_no_run_from_being_looked_after(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await world.service.desk.submit("ada", body())).record.id
    world.kube.end_for_test(first)

    async def away(*_arguments: object, **_more: object) -> None:
        raise StoreError("no answer")

    monkeypatch.setattr(world.service.core.trail, "complete", away)
    await world.service.keeper.tend()
    assert (await world.store.get(f"nlp/ada/records/{first}.json")) is not None
