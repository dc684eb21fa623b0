"""Handing in a run: judged, created once, and told in plain words when it may not be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from services.job_handoff.verdicts import RunRefusedError
from services.kube_errors import ForbiddenError, InvalidError, KubeError, UnavailableError
from tests.fakes.kube import FakeKube

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


@pytest.mark.parametrize(
    ("error", "reason", "status"),
    [
        (UnavailableError("too many requests", kind="jobs", status=429), "api-busy", 503),
        (UnavailableError("etcdserver: request timed out", kind="jobs", status=500), "api-error", 503),
        (UnavailableError("no answer", kind="jobs", status=None), "api-unavailable", 503),
        (
            ForbiddenError(
                'jobs.batch "run-x" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, '
                "used: count/jobs.batch=10, limited: count/jobs.batch=10",
                kind="jobs",
                status=403,
            ),
            "namespace-quota",
            409,
        ),
        (InvalidError("spec.template: bad", kind="jobs", status=422), "invalid-pod", 409),
    ],
)
async def test_what_the_api_server_says_is_told_and_leaves_no_half_run(
    world: World, monkeypatch: pytest.MonkeyPatch, error: KubeError, reason: str, status: int
) -> None:
    async def fail(*_arguments: object, **_more: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(world.service.core.cluster, "create", fail)
        with pytest.raises(RunRefusedError) as refused:
            await world.service.desk.submit("ada", body())
    assert (refused.value.reason, refused.value.status) == (reason, status)
    assert "by itself" not in refused.value.text
    assert "workspace" not in refused.value.message
    assert (await world.service.desk.submit("ada", body())).created


WRITES = 7
"""Of a submission: program, source, policy, run, whose they are twice, and the audit trail."""


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("step", range(1, WRITES + 1))
async def test_a_service_that_is_killed_at_any_step_makes_one_run_of_a_repeated_request(
    world: World, step: int, done: bool
) -> None:
    """The client sends it again until it has an answer; what was begun before is taken up or cleaned away."""
    asked = body(profile="ray")
    await killed_at(world, step, asked, done=done)
    result = await world.service.desk.submit("ada", asked)
    (ray,) = world.kube.all_for_test("rayjobs")
    assert ray["metadata"]["name"] == result.record.id
    await world.service.keeper.clean()
    for plural in ("configmaps", "networkpolicies"):
        for one in world.kube.all_for_test(plural):
            owners = one["metadata"].get("ownerReferences") or ()
            assert "runner" in one["metadata"]["name"] or owners[0]["uid"] == ray["metadata"]["uid"]


class Killed(BaseException):
    """The process is gone."""


async def killed_at(world: World, step: int, asked: dict[str, Any], *, done: bool) -> None:
    """Submit with a service whose process ends at one of its writes: before it, or when it is done."""
    writes = 0

    def dying(target: Any, name: str) -> Callable[..., Awaitable[Any]]:
        whole = getattr(target, name)

        async def call(*arguments: Any, **more: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == step and not done:
                raise Killed
            answer = await whole(*arguments, **more)
            if writes == step:
                raise Killed
            return answer

        return call

    with pytest.MonkeyPatch.context() as patch:
        for target, name in (
            (world.kube, "create"),
            (world.kube, "patch"),
            (world.service.core.store, "put"),
        ):
            patch.setattr(target, name, dying(target, name))
        with pytest.raises(Killed):
            await world.service.desk.submit("ada", asked)


async def test_what_fails_after_a_run_is_created_does_not_hide_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sent no key would send it again, and have two."""
    down = UnavailableError("too many requests", kind="configmaps", status=429)

    async def fail(*_arguments: object, **_more: object) -> None:
        raise down

    with monkeypatch.context() as patch:
        patch.setattr(world.service.core.cluster, "give", fail)
        result = await world.service.desk.submit("ada", body(key=None))
    assert result.created
    (source,) = [one for one in world.kube.all_for_test("configmaps") if "source" in one["metadata"]["name"]]
    assert "ownerReferences" not in source["metadata"]
    await world.service.keeper.clean()
    (source,) = [one for one in world.kube.all_for_test("configmaps") if "source" in one["metadata"]["name"]]
    (job,) = world.kube.all_for_test("jobs")
    assert source["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]


@pytest.mark.parametrize("status", [429, 500])
@pytest.mark.parametrize("question", range(16))
async def test_an_api_server_that_fails_once_at_any_question_costs_no_second_run(
    world: World, monkeypatch: pytest.MonkeyPatch, question: int, status: int
) -> None:
    begin, asked = FakeKube._begin, 0

    def failing(self: FakeKube, verb: str, path: str) -> Any:
        nonlocal asked
        asked += 1
        if asked == question + 1:
            raise UnavailableError("not now", kind=path, status=status)
        return begin(self, verb, path)

    with monkeypatch.context() as patch:
        patch.setattr(FakeKube, "_begin", failing)
        told: list[int] = []
        for _ in range(2):
            try:
                answer = await world.service.desk.submit("ada", body(profile="ray"))
            except RunRefusedError as error:
                told.append(error.status)
            except KubeError:
                told.append(503)  # as `api_base.refused` answers it
            else:
                break
    assert told in ([], [503])
    assert asked > question
    (ray,) = world.kube.all_for_test("rayjobs")
    assert ray["metadata"]["name"] == answer.record.id
