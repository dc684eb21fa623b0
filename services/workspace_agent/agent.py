"""The agent: samples, reports, tells the pages what the culler answered, has them save when it asks for that.

Shell: runs in the Jupyter server's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from hub_ext.protocol import (
    REPORT_SECONDS,
    Answer,
    Document,
    Keep,
    Report,
    Saved,
    SaveRequest,
    State,
    Stop,
    Unsaved,
)

from .culler import Culler, CullerError
from .documents import Pages, SaveRound, close_round
from .pace import seconds_until_next
from .readers import Sampler
from .reports import LabState, Sample, Sender, StateClock, build_report
from .view import build_view

log = logging.getLogger(__name__)

WATCH_SECONDS = 30.0
"""Between two readings of the GPUs, however seldom reports are wanted."""
SAVE_SECONDS = 30.0
"""The pages get this long to save, or less if the culler waits less long."""
BACK_SECONDS = 60.0
"""Input this recent means that somebody came back."""

Emit = Callable[[dict[str, Any]], object]


class Agent:
    """The agent of one server.

    Parameters
    ----------
    sampler
        Reads what goes on.
    culler
        Whom to tell; None where no culler is set, and then only the pages are told.
    server
        Name of the server, empty for the default one.
    emit
        Sends a view to all open pages.
    handoff
        Whether the pages offer to run files as jobs.
    """

    def __init__(
        self, sampler: Sampler, culler: Culler | None, *, server: str, emit: Emit, handoff: bool
    ) -> None:
        self._sampler, self._culler, self._server = sampler, culler, server
        self._emit, self._handoff = emit, handoff
        self._name = secrets.token_hex(8)
        self._pages, self._clock = Pages(), StateClock()
        self._number = self._failures = 0
        self._report: Report | None = None
        self._answer: Answer | None = None
        self._answered_at = 0.0
        self._problem: str | None = None
        self._round: SaveRound | None = None
        self._saves = ""
        """Id of the last wish to save."""
        self._wake, self._progress = asyncio.Event(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin; needs a running event loop."""
        self._spawn(self._run())

    async def once(self) -> None:
        """Take one sample, report it and tell the pages."""
        self._report = self._build(await self._sampler.take())
        if self._culler is None:
            self._sampler.settle()
            self._tell()
        elif await self._send(self._culler, self._report) is not None:
            self._sampler.settle()

    def view(self) -> dict[str, Any]:
        """What a page shows now."""
        return build_view(
            answer=self._answer,
            answer_age_seconds=time.monotonic() - self._answered_at if self._answer else None,
            problem=self._problem,
            report=self._report,
            save=self._round.request if self._round else None,
            handoff=self._handoff,
        )

    def page_tells(self, page: str, documents: Iterable[Document], input_seconds: float | None) -> None:
        """A page says what it has unsaved; a user who comes back is reported at once."""
        now = time.monotonic()
        away = self._pages.input_seconds(now)
        self._pages.tell(page, documents, input_seconds=input_seconds, now=now)
        back = input_seconds is not None and input_seconds < BACK_SECONDS
        if back and (away is None or away > BACK_SECONDS) and self._waits_for_user():
            self._wake.set()

    def page_closes(self, page: str) -> None:
        """A page was closed."""
        self._pages.close(page)
        if self._round:
            self.page_saved(page, self._round.request.id, (), ())

    def page_saved(self, page: str, save: str, saved: Iterable[str], failed: Iterable[Unsaved]) -> None:
        """A page did what it was asked to save."""
        if self._round and self._round.request.id == save:
            self._round = self._round.answered(page, saved, failed)
            self._progress.set()

    async def keep(self) -> Answer:
        """Ask the culler to keep the server. Raises `CullerError`."""
        return await self._ask(Keep(server=self._server))

    async def end(self, *, save: bool) -> Answer:
        """Ask the culler to stop the server. Raises `CullerError`."""
        return await self._ask(Stop(server=self._server, save=save))

    async def _run(self) -> None:
        # Workspaces that started together do not report together.
        await self._pause(random.random() * WATCH_SECONDS / 6)  # noqa: S311 - spreads load, guards nothing
        while True:
            await self._guarded(self.once())
            asked = self._answer.next_report_seconds if self._answer else REPORT_SECONDS
            wait = seconds_until_next(asked, self._failures, random.random())  # noqa: S311
            while wait > WATCH_SECONDS and not self._wake.is_set():
                await self._pause(WATCH_SECONDS)
                wait -= WATCH_SECONDS
                await self._guarded(self._sampler.watch_gpus())
            await self._pause(wait)
            self._wake.clear()

    async def _guarded(self, work: Awaitable[object]) -> None:
        try:
            await work
        except Exception:
            # This code runs in the user's server, which must not suffer from a fault in it.
            log.exception("workspace agent: this report fails, the next one may not")
            self._failures += 1

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    def _build(self, sample: Sample) -> Report:
        now = time.monotonic()
        self._number += 1
        return build_report(
            sample,
            Sender(server=self._server, agent=self._name, number=self._number),
            self_test=self._sampler.self_test,
            lab=LabState(
                documents=self._pages.documents(now),
                input_seconds=self._pages.input_seconds(now),
            ),
            state_seconds=self._clock.seconds({kernel.id: kernel.state for kernel in sample.kernels}, now),
            now=datetime.now(UTC),
        )

    async def _send(self, culler: Culler, report: Report) -> Answer | None:
        try:
            answer = await culler.send(report)
        except CullerError as error:
            self._failures += 1
            if self._problem != error.problem:
                log.warning("workspace agent: %s", error.problem)
            self._problem = error.problem
            self._tell()
            return None
        if self._problem:
            log.info("workspace agent: the idle-culler answers again")
        self._take(answer)
        return answer

    async def _ask(self, message: Keep | Stop | Saved) -> Answer:
        if self._culler is None:
            raise CullerError("No idle-culler is set for this server")
        answer = await self._culler.send(message)
        self._take(answer)
        return answer

    def _take(self, answer: Answer) -> None:
        """Remember an answer, tell the pages, and begin to save if it asks for that."""
        self._answer, self._answered_at = answer, time.monotonic()
        self._failures, self._problem = 0, None
        wanted = answer.save
        if wanted and wanted.id != self._saves:
            self._saves = wanted.id
            self._spawn(self._guarded(self._save(wanted)))
        else:
            self._tell()

    async def _save(self, request: SaveRequest) -> None:
        """Have all open pages save, and tell the culler what became of it."""
        pages = self._pages.open(time.monotonic())
        done = self._round = SaveRound(request=request, missing=frozenset(pages))
        self._tell()
        deadline = time.monotonic() + min(SAVE_SECONDS, request.seconds * 0.8)
        while not done.done and (left := deadline - time.monotonic()) > 0:
            self._progress.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._progress.wait(), left)
            done = self._round or done
        self._round = None
        try:
            await self._ask(close_round(done, pages, server=self._server))
        except CullerError as error:
            log.warning("workspace agent: saving could not be confirmed: %s", error.problem)
            self._tell()

    def _waits_for_user(self) -> bool:
        return self._answer is not None and self._answer.state in {State.WARNED, State.IDLE}

    def _tell(self) -> None:
        try:
            self._emit(self.view())
        except Exception:
            # As above: a page that cannot be told must not end the reports.
            log.exception("workspace agent: the pages could not be told")

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
