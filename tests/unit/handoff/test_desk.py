"""Handing in a run: judged, created once, and told in plain words when it may not be."""

from __future__ import annotations

import asyncio

import pytest

from services.job_handoff.verdicts import RunRefusedError
from services.kube_errors import UnavailableError

from .conftest import World, body


async def test_a_run_is_created_with_all_that_belongs_to_it(world: World) -> None:
    result = await world.service.desk.submit("ada", body())
    assert (result.created, result.forecast.when) == (True, "now")
    (job,) = world.kube.all_for_test("jobs")
    assert job["metadata"]["name"] == result.record.id
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "nlp"
    maps = {one["metadata"]["name"]: one for one in world.kube.all_for_test("configmaps")}
    assert set(maps) == {f"{result.record.id}-source", *(n for n in maps if n.startswith("handoff-runner-"))}
    assert (
        maps[f"{result.record.id}-source"]["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    )


async def test_the_same_key_gives_the_same_run_however_often_it_is_sent(world: World) -> None:
    first = await world.service.desk.submit("ada", body())
    again = await asyncio.gather(*(world.service.desk.submit("ada", body()) for _ in range(5)))
    assert {one.record.id for one in again} == {first.record.id}
    assert not any(one.created for one in again)
    assert len(world.kube.all_for_test("jobs")) == 1


async def test_another_request_under_the_key_is_refused(world: World) -> None:
    await world.service.desk.submit("ada", body())
    with pytest.raises(RunRefusedError) as error:
        await world.service.desk.submit("ada", body(retries=3))
    assert (error.value.reason, error.value.status) == ("key-reused", 409)


async def test_another_user_s_key_is_another_run(world: World) -> None:
    await world.upload("bob")
    first = await world.service.desk.submit("ada", body())
    second = await world.service.desk.submit("bob", body())
    assert first.record.id != second.record.id


async def test_a_dry_run_makes_nothing(world: World) -> None:
    result = await world.service.desk.submit("ada", body(), dry_run=True)
    assert not result.created
    assert world.kube.all_for_test("jobs") == []
    assert world.kube.all_for_test("configmaps") == []


async def test_a_cluster_that_does_not_answer_is_said_and_the_retry_succeeds(world: World) -> None:
    await world.service.desk.submit("ada", body(key="warm"))
    down = UnavailableError("no answer", kind="jobs", status=503)
    world.kube.fail_for_test(*[down] * 3)
    with pytest.raises(UnavailableError):
        await world.service.desk.submit("ada", body())
    assert (await world.service.desk.submit("ada", body())).created
