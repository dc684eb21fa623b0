"""The agent's own part: when it reports, what it does with answers, and that nothing ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from hub_ext.protocol import (
    Answer,
    Attribution,
    Document,
    Keep,
    Message,
    Report,
    Saved,
    SaveRequest,
    SelfTest,
    State,
    Unsaved,
)
from services.workspace_agent.agent import BACK_SECONDS, Agent
from services.workspace_agent.culler import Culler, CullerError
from services.workspace_agent.gpus import GpuReading
from services.workspace_agent.readers import Sampler
from services.workspace_agent.reports import Sample
from tests.devcluster.waiting import until_met
from tests.fakes.idle_culler import FakeCuller

A = Document(path="a.ipynb", kind="notebook")


class FakeSampler:
    """Takes empty samples, or fails."""

    def __init__(self) -> None:
        self.self_test = SelfTest(attribution=Attribution.NO_GPU)
        self.taken = self.settled = 0
        self.failing = False

    async def take(self) -> Sample:
        self.taken += 1
        if self.failing:
            raise RuntimeError("no process table")
        return Sample(window_seconds=30)

    async def watch_gpus(self) -> GpuReading:
        return GpuReading()

    def settle(self) -> None:
        self.settled += 1


class Line:
    """The way to a culler of the same process."""

    def __init__(self, culler: FakeCuller) -> None:
        self.culler, self.broken = culler, ""

    async def send(self, message: Message) -> Answer:
        if self.broken:
            raise CullerError(self.broken)
        return self.culler.take(message)


class Workspace:
    """An agent with all that it talks to."""

    def __init__(self, *, with_culler: bool = True) -> None:
        self.sampler, self.culler = FakeSampler(), FakeCuller()
        self.line = Line(self.culler)
        self.views: list[dict[str, Any]] = []
        self.agent = Agent(
            cast("Sampler", self.sampler),
            cast("Culler", self.line) if with_culler else None,
            server="gpu",
            emit=self.views.append,
            handoff=False,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let it report by itself."""
        self.agent.start()
        yield
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


async def until(condition: Callable[[], object]) -> None:
    await until_met(condition, what="the agent to do it")


async def test_each_report_is_numbered_and_answered() -> None:
    space = Workspace()
    await space.agent.once()
    await space.agent.once()
    reports = space.culler.of(Report)
    assert [report.number for report in reports] == [1, 2]
    assert len({report.agent for report in reports}) == 1
    assert reports[0].server == "gpu"
    assert space.sampler.settled == 2
    assert space.views[-1]["answer"]["state"] == State.IN_USE


async def test_what_did_not_arrive_is_reported_again_and_the_pages_are_told() -> None:
    space = Workspace()
    space.line.broken = "The idle-culler does not answer: refused"
    await space.agent.once()
    assert space.sampler.settled == 0
    assert space.views[-1]["problem"] == space.line.broken
    space.line.broken = ""
    await space.agent.once()
    assert space.sampler.settled == 1
    assert space.views[-1]["problem"] is None


async def test_without_a_culler_only_the_pages_are_told() -> None:
    space = Workspace(with_culler=False)
    await space.agent.once()
    assert space.views[-1]["answer"] is None
    assert space.sampler.settled == 1
    with pytest.raises(CullerError, match="No idle-culler is set"):
        await space.agent.keep()


async def test_a_fault_does_not_end_the_reports() -> None:
    space = Workspace()
    async with space.running():
        await until(lambda: space.culler.of(Report))
        space.sampler.failing = True
        taken, reports = space.sampler.taken, len(space.culler.of(Report))
        await until(lambda: space.sampler.taken > taken)
        space.sampler.failing = False
        await until(lambda: len(space.culler.of(Report)) > reports)


async def test_a_page_that_cannot_be_told_does_not_end_the_reports() -> None:
    space = Workspace()

    def fail(_: object) -> None:
        raise ValueError("no such event")

    space.agent._emit = fail
    async with space.running():
        await until(lambda: len(space.culler.of(Report)) > 1)


async def test_who_comes_back_to_a_server_that_waits_is_reported_at_once() -> None:
    space = Workspace()
    space.culler.report_seconds = 600
    space.culler.deadline = time.monotonic() + 3600
    async with space.running():
        await until(lambda: space.culler.of(Report))
        space.agent.page_tells("p", [], None)
        space.agent.page_tells("p", [], BACK_SECONDS * 2)
        space.agent.page_tells("p", [], 1.0)
        await until(lambda: len(space.culler.of(Report)) > 1)
    first, second = space.culler.of(Report)
    assert first.input_seconds is None
    assert second.input_seconds < BACK_SECONDS


async def test_pages_save_when_asked_and_the_culler_is_told_once() -> None:
    space = Workspace()
    space.agent.page_tells("p", [A], None)
    space.agent.page_tells("q", [], None)
    space.culler.save = SaveRequest(id="s1", seconds=60)
    await space.agent.once()
    await space.agent.once()  # it asks again, for it has no answer yet
    await until(lambda: space.views[-1]["save"])
    assert space.views[-1]["save"]["id"] == "s1"
    space.agent.page_saved("p", "another", ["x"], [])
    space.agent.page_saved("p", "s1", [], [Unsaved(path=A.path, why="read-only")])
    space.agent.page_closes("q")
    await until(lambda: space.culler.of(Saved))
    (told,) = space.culler.of(Saved)
    assert (told.save, told.saved) == ("s1", ())
    assert told.failed == (Unsaved(path=A.path, why="read-only"),)
    await until(lambda: space.views[-1]["answer"]["state"] == State.STOPPING)
    assert space.views[-1]["save"] is None


async def test_nobody_is_waited_for_where_no_page_is_open() -> None:
    space = Workspace()
    space.culler.save = SaveRequest(id="s1", seconds=60)
    await space.agent.once()
    await until(lambda: space.culler.of(Saved))


async def test_a_silent_page_is_not_waited_for_longer_than_the_culler_waits() -> None:
    space = Workspace()
    space.agent.page_tells("p", [A], None)
    space.culler.save = SaveRequest(id="s1", seconds=0.5)
    await space.agent.once()
    await until(lambda: space.culler.of(Saved))
    assert [entry.path for entry in space.culler.of(Saved)[0].failed] == [A.path]


async def test_keep_is_passed_on_with_the_server_s_name() -> None:
    space = Workspace()
    assert (await space.agent.keep()).state is State.KEPT
    assert space.culler.of(Keep) == [Keep(server="gpu")]
