"""The culler: judges all servers in passes, and single ones as reports and wishes come; carries verdicts out.

Whatever goes wrong with one server stays with that server. A pass looks at servers in turns: reports, wishes
and pages are answered meanwhile, and what they change is what counts at its end.

Shell: sends notices, counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from hub_ext.errors import HubError
from hub_ext.protocol import Report
from hub_ext.protocol import State as Told

from ..turns import in_turns
from . import notices
from .alarms import Alarms, note
from .answers import Outlook, extends_session, keep_refusal
from .book import Book
from .breaker import Gate
from .closing import has_page
from .gatekeeper import Gatekeeper
from .memory import Store
from .metrics import CullerMetrics, count
from .notify import Notifier
from .observe import Key
from .reasons import Reason
from .stopping import Stopper
from .stops import Stops
from .track import keep
from .verdict import Action, Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a culler acts with."""

    stopper: Stopper
    store: Store
    notifier: Notifier
    metrics: CullerMetrics
    handoff: str = ""
    """Path of the service that turns notebooks into jobs; empty where there is none."""
    page: str = ""
    """Address of the users' page, for notices."""


class Culler:
    """Acts on what the book says."""

    def __init__(self, book: Book, tools: Tools) -> None:
        self.book, self.tools = book, tools
        self._alarms = Alarms(tools.notifier)
        self._gatekeeper = Gatekeeper(book, self._alarms)
        self._stops = Stops(book, tools.stopper, tools.notifier, tools.metrics, page=tools.page)
        self._newcomers: set[str] = set()
        """Users of servers that report and are not known yet."""

    @property
    def gate(self) -> Gate:
        """How many idle servers may be stopped at present."""
        return self._gatekeeper.gate

    # --- passes

    async def once(self) -> None:
        """Judge all servers, and do what follows."""
        book, newcomers = self.book, frozenset(self._newcomers)
        try:
            await book.observer.look(newcomers)
            self._newcomers -= newcomers
        except HubError:
            # It may have been restarted: what it knows of activity is old then.
            self._gatekeeper.begin_grace()
            await self._show()
            raise
        book.forget()
        await self._settle_all(await self._look_at_all())
        await self.tools.store.save(book.memory)
        await self._show()

    async def _look_at_all(self) -> list[Key]:
        """Judge all servers in turns, and warn of what is on its way; returns those that were judged."""
        looked: list[Key] = []
        async for key in in_turns(self.book.running()):
            try:
                self._look_at(key)
            except Exception as error:
                log.error("not judged: user=%r server=%r error=%r", *key, error, exc_info=error)
            else:
                looked.append(key)
        return looked

    def _look_at(self, key: Key) -> None:
        if key not in self.book.observer.view.servers:
            return  # it has stopped meanwhile
        verdict = self.book.look(key, announces=True)
        if verdict.action is Action.WARN and self.book.acts:
            self._warn(key, verdict)

    async def _settle_all(self, looked: Sequence[Key]) -> None:
        """Do what is due, now that it is known of all servers; of each by the last word about it."""
        judged = self.book.judged
        verdicts = {key: judged[key].due for key in looked if key in judged}
        self._gatekeeper.judge_pass(verdicts, stopping=self._stops.keys)
        async for key in in_turns([key for key, one in verdicts.items() if one.action in _ENDS]):
            if key in judged and judged[key].due.action in _ENDS:
                self._settle(key, judged[key].due, in_pass=True)

    def _settle(self, key: Key, verdict: Verdict, *, in_pass: bool, begins: bool = True) -> None:
        """Stop a server that is due, as far as that may be done.

        Parameters
        ----------
        in_pass
            All servers are being looked at, so that it is known how many would be stopped.
        begins
            A stop may begin now; else it is left for the next pass.
        """
        if key in self._stops.keys:
            return
        reason = self._gatekeeper.why_held(key, verdict, in_pass=in_pass)
        if reason:
            self._gatekeeper.forget(key)
            self.book.hold_back(key, reason)
        elif verdict.action is Action.STOP and begins:
            self._gatekeeper.forget(key)
            self._stops.begin(key, verdict)

    def _warn(self, key: Key, verdict: Verdict) -> None:
        note("warned", key, verdict.reason, seconds_left=round(verdict.seconds_left or 0))
        self.tools.metrics.warnings.labels(verdict.limit or "").inc()
        self.tools.notifier.send(notices.warning(*key, verdict, page=self.tools.page))

    # --- workspaces and users

    def hear(self, user: str, report: Report) -> None:
        """Take a report, and judge the server again."""
        self.tools.metrics.reports.inc()
        key = user, report.server
        self.book.inbox.put(user, report, self.book.clock())
        if key in self.book.observer.view.servers:
            self._settle(key, self.book.look(key, announces=False), in_pass=False, begins=False)
        else:
            self._newcomers.add(user)

    async def keep(self, key: Key) -> str:
        """Keep a server for its user; returns why that may not be, or nothing."""
        book, outlook = self.book, self.outlook(key)
        refusal = keep_refusal(outlook)
        if refusal:
            return refusal
        extends = extends_session(outlook.verdict)
        seconds = outlook.limits.keep_for
        book.memory.tracks[key] = keep(outlook.track, book.clock(), seconds=seconds, extends_session=extends)
        self.tools.metrics.keeps.inc()
        note("kept", key, outlook.verdict.reason, keeps=outlook.track.keeps + 1, extends_session=extends)
        await self._after_wish(key)
        return ""

    async def ask_stop(self, key: Key, *, by: str, save: bool) -> None:
        """Stop a server because somebody wants it; also where nothing is stopped by itself."""
        tracks = self.book.memory.tracks
        tracks[key] = replace(tracks[key], stop_by=by, stop_save=save, saving=None)
        note("stop-asked", key, Reason.ADMIN_ASKED if by == "admin" else Reason.USER_ASKED, save=save)
        await self._after_wish(key)

    async def saved(self, key: Key, save: str, failed: tuple[str, ...]) -> None:
        """Note what became of a save that was asked for."""
        track = self.book.memory.tracks[key]
        if track.saving is None or track.saving.id != save:
            return
        done = replace(track.saving, done=self.book.clock(), failed=failed)
        self.book.memory.tracks[key] = replace(track, saving=done)
        note("saved", key, self.book.judged[key].verdict.reason, failed=len(failed))
        await self._after_wish(key)

    def release(self, *, by: str) -> None:
        """Let idle servers be stopped for a while although the breaker would hold them."""
        self._gatekeeper.release(by=by)

    async def _after_wish(self, key: Key) -> None:
        """Write a wish down, then do it: nobody has to repeat it after a restart."""
        await self.tools.store.save(self.book.memory)
        if key in self.book.observer.view.servers:
            self._settle(key, self.book.look(key, announces=False), in_pass=False)

    def outlook(self, key: Key) -> Outlook:
        """Say how things stand with a server that was judged."""
        judged, book = self.book.judged[key], self.book
        stopping = key in self._stops.keys
        return Outlook(
            verdict=replace(judged.verdict, told=Told.STOPPING) if stopping else judged.verdict,
            track=book.memory.tracks[key],
            limits=judged.limits,
            acts=book.acts,
            has_page=has_page(judged.facts, book.clock()),
            handoff_url=f"{self.tools.handoff}?server={quote(key[1], safe='')}" if self.tools.handoff else "",
        )

    # --- what is counted, and who hears of trouble

    async def _show(self) -> None:
        judged = [(one.verdict, one.facts.pod) for one in self.book.judged.values()]
        observer = self.book.observer
        problems = observer.view.problems
        tally = await asyncio.to_thread(count, judged)
        self.tools.metrics.show(tally, {name: name not in problems for name in observer.sources})
        for name in observer.sources:
            problem = problems.get(name, "")
            self._alarms.set(name, f"No answer, clocks stand still: {problem}" if problem else "")

    async def drain(self) -> None:
        """Wait for the stops that are under way."""
        await self._stops.drain()

    async def close(self) -> None:
        """End the stops that are under way: what the hub was told goes on, the rest is due again later."""
        await self._stops.close()
        await self.tools.store.save(self.book.memory)
        await self.tools.notifier.close()


_ENDS: Final = frozenset({Action.SAVE, Action.STOP})
