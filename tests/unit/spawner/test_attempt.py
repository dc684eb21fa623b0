"""An attempt is told as it goes, ends in exactly one way, and leaves nothing running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hub_ext.attempt import QUICK, Attempt, unless
from hub_ext.cluster.nature import wait
from hub_ext.cluster.starts import Outcome
from hub_ext.cluster.waits import Wait, WaitReason
from hub_ext.patience import Patience


class Start:
    """Keeps how it ended, and waits as a test lays out."""

    def __init__(self, *told: Wait) -> None:
        self.told = told
        self.ends: list[tuple[Any, ...]] = []

    async def waits(self) -> AsyncIterator[Wait]:
        for one in self.told:
            yield one

    def succeeded(self) -> None:
        self.ends.append(("succeeded",))

    def refused(self, reason: str) -> None:
        self.ends.append(("refused", reason))

    def failed(self, reason: str, outcome: Outcome = Outcome.FAILED) -> None:
        self.ends.append(("failed", reason, outcome))


def begun(*told: Wait) -> tuple[Attempt, Start]:
    attempt, start = Attempt(), Start(*told)
    attempt.begin(start)  # type: ignore[arg-type]
    return attempt, start


async def forever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("ended")


async def number() -> int:
    return 7


async def raising() -> None:
    raise LookupError


class Queue:
    """Waits that a test tells one by one, and the time that it lets pass between them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._told: asyncio.Queue[Wait | None] = asyncio.Queue()
        self._passed = 0.0
        loop = asyncio.get_running_loop()
        begun = loop.time()
        monkeypatch.setattr(loop, "time", lambda: begun + self._passed)

    async def waits(self) -> AsyncIterator[Wait]:
        while (told := await self._told.get()) is not None:
            yield told

    async def tell(self, reason: WaitReason | None, *, fatal: bool = False) -> None:
        await self._told.put(reason and wait(reason, fatal=fatal))
        await settle()

    async def let_pass(self, seconds: float) -> None:
        self._passed += seconds
        await settle()


async def settle() -> None:
    """Let everything that is due happen."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[Queue, asyncio.Task[Wait | None]]:
    """An attempt whose pod is made, watched with a minute of its own and an hour for queues."""
    queue, attempt = Queue(monkeypatch), Attempt()
    attempt.begin(queue)  # type: ignore[arg-type]
    attempt.created.set()
    guard = asyncio.ensure_future(attempt.trouble(Patience(own=60 + QUICK, queue=3600)))
    await settle()
    await queue.let_pass(QUICK)
    return queue, guard


async def test_time_in_a_queue_is_not_the_start_s_own(
    watched: tuple[Queue, asyncio.Task[Wait | None]],
) -> None:
    queue, guard = watched
    await queue.let_pass(30)
    await queue.tell(WaitReason.IN_QUEUE)
    await queue.let_pass(2000)
    await queue.tell(WaitReason.SCALING_UP)
    await queue.let_pass(1500)
    assert not guard.done()
    await queue.tell(WaitReason.PULLING)
    await queue.let_pass(25)
    assert not guard.done()
    await queue.let_pass(10)
    with pytest.raises(TimeoutError):
        guard.result()


async def test_a_queue_is_not_waited_in_for_ever(watched: tuple[Queue, asyncio.Task[Wait | None]]) -> None:
    queue, guard = watched
    await queue.tell(WaitReason.IN_QUEUE)
    await queue.let_pass(2000)
    await queue.tell(WaitReason.SCHEDULING)
    await queue.tell(WaitReason.IN_QUEUE)
    await queue.let_pass(1500)
    assert not guard.done()
    await queue.let_pass(200)
    with pytest.raises(TimeoutError):
        guard.result()


async def test_what_cannot_end_well_ends_the_watch(watched: tuple[Queue, asyncio.Task[Wait | None]]) -> None:
    queue, guard = watched
    await queue.tell(WaitReason.PULLING)
    await queue.tell(WaitReason.IMAGE_NOT_FOUND, fatal=True)
    found = guard.result()
    assert found is not None
    assert found.reason is WaitReason.IMAGE_NOT_FOUND


async def test_a_start_that_is_told_to_its_end_is_no_trouble(
    watched: tuple[Queue, asyncio.Task[Wait | None]],
) -> None:
    queue, guard = watched
    await queue.tell(WaitReason.RUNNING)
    await queue.tell(None)
    assert guard.result() is None


async def test_a_pod_that_is_never_made_is_the_start_s_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, attempt = Queue(monkeypatch), Attempt()
    guard = asyncio.ensure_future(attempt.trouble(Patience(own=60, queue=3600)))
    await settle()
    await clock.let_pass(61)
    with pytest.raises(TimeoutError):
        guard.result()


async def test_work_that_is_done_ends_the_guard() -> None:
    ended: list[str] = []
    assert await unless(number(), forever(ended)) == 7
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_a_guard_that_objects_ends_the_work() -> None:
    ended: list[str] = []
    with pytest.raises(LookupError):
        await unless(forever(ended), raising())
    assert ended == ["ended"]


async def test_a_guard_with_nothing_to_say_lets_the_work_go_on() -> None:
    async def later() -> int:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return 8

    async def nothing() -> None:
        return

    assert await unless(later(), nothing()) == 8


async def test_who_is_cancelled_leaves_nothing_running() -> None:
    ended: list[str] = []
    task = asyncio.ensure_future(unless(forever(ended), forever(ended)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended", "ended"]


@pytest.mark.parametrize(
    ("finish", "end"),
    [
        (lambda spawn: spawn.set_result(None), ("succeeded",)),
        (lambda spawn: spawn.set_exception(TimeoutError()), ("failed", "no-answer", Outcome.FAILED)),
        (lambda spawn: spawn.cancel(), ("failed", "", Outcome.CANCELLED)),
    ],
)
async def test_whether_a_server_answers_is_known_when_the_hub_is_done(
    finish: Callable[[asyncio.Future[None]], object], end: tuple[Any, ...]
) -> None:
    attempt, start = begun()
    spawn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    attempt.hand_over(spawn)
    assert (attempt.running, attempt.over, start.ends) == (False, False, [])
    finish(spawn)
    await asyncio.sleep(0)
    assert (attempt.over, start.ends) == (True, [end])


async def test_who_waits_for_an_attempt_that_reserved_nothing_is_let_go() -> None:
    attempt = Attempt()
    attempt.fail()
    assert [event async for event in attempt.progress()] == []


async def test_the_same_reason_is_not_told_again_at_once_and_the_bar_never_goes_back() -> None:
    pulling = [wait(WaitReason.PULLING, f" for {seconds} s") for seconds in (2, 4, 6)]
    attempt, _ = begun(wait(WaitReason.STARTING), *pulling, wait(WaitReason.RUNNING))
    events = [event async for event in attempt.progress()]
    assert [event["reason"] for event in events] == ["starting", "pulling", "running"]
    percents = [event["progress"] for event in events]
    assert percents == sorted(percents)
    assert percents[-1] < 100
