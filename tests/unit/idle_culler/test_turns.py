"""A pass over very many servers: what happens meanwhile is answered, and counts at the end of the pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hub_ext.protocol import State as Told
from services.idle_culler.book import Book
from services.idle_culler.reasons import Reason
from services.idle_culler.verdict import Verdict
from services.turns import TURN, in_turns
from tests.fakes.culled_hub import BUSY, CulledHub
from tests.unit.idle_culler.test_culler import POLICY, STOP, told

MANY = 10
"""Turns of a pass."""
LOOSE = {**POLICY, "breaker": {"share": 1}}


async def test_others_have_their_turn_after_each_few_items() -> None:
    seen, rounds = list[tuple[int, int]](), 0

    async def count_rounds() -> None:
        nonlocal rounds
        while len(seen) < 10:
            rounds += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count_rounds())
    seen.extend([(one, rounds) async for one in in_turns(range(10), turn=3)])
    await task
    assert [one for one, _ in seen] == list(range(10))
    assert [at for _, at in seen] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert [one async for one in in_turns([])] == []


def meanwhile(monkeypatch: pytest.MonkeyPatch, user: str, then: Callable[[], object]) -> None:
    """Let something happen once, in the next turn after a user's server was judged in a pass."""
    look, done = Book.look, list[str]()

    def seen(self: Book, key: tuple[str, str], *, announces: bool) -> Verdict:
        verdict = look(self, key, announces=announces)
        if key[0] == user and announces and not done:
            done.append(user)
            asyncio.get_running_loop().call_soon(then)
        return verdict

    monkeypatch.setattr(Book, "look", seen)


async def test_a_pass_never_holds_the_loop_for_more_than_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CulledHub(POLICY)
    for number in range(TURN * MANY):
        world.add(f"user-{number}")
    look, looks, held = Book.look, 0, list[int]()

    def counted(self: Book, key: tuple[str, str], *, announces: bool) -> Verdict:
        nonlocal looks
        looks += 1
        return look(self, key, announces=announces)

    async def ask() -> None:
        """Ask again and again; note how many servers were judged before each answer."""
        last = 0
        while True:
            await asyncio.sleep(0)
            held.append(looks - last)
            last = looks

    monkeypatch.setattr(Book, "look", counted)
    asking = asyncio.create_task(ask())
    await world.passes(1)
    asking.cancel()
    assert looks == sum(held) == TURN * MANY
    assert max(held) == TURN, "one part in ten of this pass"


async def test_work_that_is_reported_in_the_midst_of_a_pass_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CulledHub(LOOSE)
    for number in range(TURN + 1):
        world.add(f"user-{number}")
    await world.passes(STOP - 1)
    meanwhile(monkeypatch, "user-3", lambda: world.hear("user-3", processes=BUSY))
    await world.passes(1)
    assert "user-3/" not in await world.stops()
    assert len(world.hub.stopped) == TURN
    assert told(world, "user-3") == (Told.IN_USE, Reason.KERNEL_RUNS)


async def test_a_keep_in_the_midst_of_a_pass_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    world, wishes = CulledHub(LOOSE), list[asyncio.Task[str]]()
    for number in range(TURN + 1):
        world.add(f"user-{number}")
    await world.passes(STOP - 1)
    wish = world.culler.keep
    meanwhile(monkeypatch, "user-3", lambda: wishes.append(asyncio.create_task(wish(("user-3", "")))))
    await world.passes(1)
    assert await wishes[0] == ""
    assert "user-3/" not in await world.stops()
    assert len(world.hub.stopped) == TURN
    assert told(world, "user-3") == (Told.KEPT, Reason.KEPT)


async def test_a_server_that_ends_in_the_midst_of_a_pass_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CulledHub(LOOSE)
    for number in range(TURN + 1):
        world.add(f"user-{number}")
    await world.passes(1)
    servers = world.culler.book.observer.view.servers
    last = ("user-20", "")

    def end() -> None:
        del servers[last]
        world.culler.book.forget()

    meanwhile(monkeypatch, "user-3", end)
    await world.passes(1)
    assert last not in world.culler.book.judged
    assert last not in world.culler.book.memory.tracks


async def test_a_report_in_the_midst_of_a_pass_hides_no_stop_from_the_breaker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Held by the gate of the pass before, it is still one of those that would be stopped."""
    world = CulledHub({**POLICY, "breaker": {"share": 0, "atLeast": TURN}})
    for number in range(TURN + 1):
        world.add(f"user-{number}")
    await world.passes(STOP)
    assert world.culler.gate.reason is Reason.TOO_MANY
    meanwhile(monkeypatch, "user-3", lambda: world.hear("user-3"))
    await world.passes(1)
    assert world.culler.gate.reason is Reason.TOO_MANY
    assert await world.stops() == []
    assert told(world, "user-3")[0] is Told.WARNED
