"""The culler: judges all servers in passes, and single ones as reports and wishes come; carries verdicts out.

Whatever goes wrong with one server stays with that server.

Shell: starts stops, sends notices, counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

from hub_ext.errors import HubError
from hub_ext.protocol import Report
from hub_ext.protocol import State as Told

from . import notices
from .alarms import Alarms, audit, note
from .answers import Outlook, extends_session, keep_refusal
from .book import Book
from .breaker import OPEN, WINDOW, Gate, Pulse, check, hold, is_idle_stop
from .closing import has_page
from .facts import HubFacts, PodFacts
from .limits import gpu_kind
from .memory import Store
from .metrics import CullerMetrics
from .notify import Notifier
from .observe import Key
from .reasons import Reason, sentence
from .stopping import Outcome, Stopper
from .track import keep
from .verdict import Action, Verdict

log = logging.getLogger(__name__)

RELEASE: Final = timedelta(hours=1)
"""How long an admin's word lets stops through that the breaker would hold."""


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
        self.gate = OPEN
        """How many idle servers may be stopped at present."""
        self._allowance = 0
        self._quiet_until = book.clock() + book.policy.grace
        self._released_until: datetime | None = None
        self._stops: dict[Key, asyncio.Task[None]] = {}
        self._newcomers: set[str] = set()
        """Users of servers that report and are not known yet."""
        self._would_stop: set[Key] = set()
        self._let_through: set[Key] = set()
        """Servers that the gate let through and whose stop has not begun: they are being saved."""
        self._alarms = Alarms(tools.notifier)

    # --- passes

    async def once(self) -> None:
        """Judge all servers, and do what follows."""
        book = self.book
        try:
            await book.observer.look(self._newcomers)
            self._newcomers.clear()
        except HubError:
            # It may have been restarted: what it knows of activity is old then.
            self._quiet_until = book.clock() + book.policy.grace
            self._show()
            raise
        book.forget()
        verdicts = dict(self._look_at_all())
        self.gate = self._judge_pass(verdicts)
        self._let_through &= {key for key, verdict in verdicts.items() if is_idle_stop(verdict)}
        self._allowance = (self.gate.allowance or 0) - len(self._let_through)
        for key, verdict in verdicts.items():
            self._settle(key, verdict, in_pass=True)
        await self.tools.store.save(book.memory)
        self._show()

    def _look_at_all(self) -> list[tuple[Key, Verdict]]:
        found: list[tuple[Key, Verdict]] = []
        for key in self.book.running():
            try:
                found.append((key, self.book.look(key, announces=True)))
            except Exception as error:
                log.error("not judged: user=%r server=%r error=%r", *key, error, exc_info=error)
        return found

    def _judge_pass(self, verdicts: Mapping[Key, Verdict]) -> Gate:
        book, now = self.book, self.book.clock()
        memory = book.memory
        memory.stopped = [one for one in memory.stopped if one > now - WINDOW]
        if now < self._quiet_until:
            return Gate(reason=Reason.GRACE)
        if self._released_until is not None and now < self._released_until:
            return OPEN
        pulse = Pulse.of([verdict for key, verdict in verdicts.items() if key not in self._stops])
        gate = check(pulse, book.policy.breaker, stopped=memory.stopped, since=memory.held_since, now=now)
        memory.held_since = gate.since
        self._alarms.set("breaker", sentence(gate.reason) if gate.reason and book.acts else "")
        return gate

    def _settle(self, key: Key, verdict: Verdict, *, in_pass: bool, begins: bool = True) -> None:
        """Do what a verdict says, as far as it may be done.

        Parameters
        ----------
        in_pass
            All servers are being looked at, so that it is known how many would be stopped.
        begins
            A stop may begin now; else it is left for the next pass.
        """
        reason = self._held_for(key, verdict, in_pass=in_pass)
        if reason:
            verdict = hold(verdict, reason)
            self.book.judged[key] = replace(self.book.judged[key], verdict=verdict)
            self._take_back_save(key)
        if verdict.action is Action.WARN and self.book.acts:
            self._warn(key, verdict)
        elif verdict.action is Action.STOP and begins and key not in self._stops:
            self._begin_stop(key, verdict)

    def _held_for(self, key: Key, verdict: Verdict, *, in_pass: bool) -> Reason | None:
        """Say why a stop that is due does not happen; None where it does, or where none is due."""
        is_end = verdict.limit is not None and verdict.action in {Action.SAVE, Action.STOP}
        if is_end and not self.book.acts:
            if key not in self._would_stop:
                self._would_stop.add(key)
                note("would-stop", key, verdict.reason)
            return Reason.OBSERVE_ONLY
        self._would_stop.discard(key)
        if not is_idle_stop(verdict):
            self._let_through.discard(key)
            return None
        return None if key in self._stops else self._gate_holds(key, verdict, in_pass=in_pass)

    def _gate_holds(self, key: Key, verdict: Verdict, *, in_pass: bool) -> Reason | None:
        """Say why the gate holds an idle stop; a save that is under way goes on."""
        gate = self.gate
        if key in self._let_through and (verdict.action is Action.SAVE or not gate.reason):
            return None
        if gate != OPEN:
            if gate.reason or not in_pass or self._allowance <= 0:
                return gate.reason or Reason.TOO_MANY
            self._allowance -= 1
        if verdict.action is Action.SAVE:
            self._let_through.add(key)
        return None

    def _take_back_save(self, key: Key) -> None:
        """Forget a save that was not confirmed: once the stop may happen, it begins with a new one."""
        self._let_through.discard(key)
        tracks = self.book.memory.tracks
        saving = tracks[key].saving
        if saving is not None and saving.done is None:
            tracks[key] = replace(tracks[key], saving=None)

    def _warn(self, key: Key, verdict: Verdict) -> None:
        note("warned", key, verdict.reason, seconds_left=round(verdict.seconds_left or 0))
        self.tools.metrics.warnings.labels(verdict.limit or "").inc()
        self.tools.notifier.send(notices.warning(*key, verdict, page=self.tools.page))

    # --- stops

    def _begin_stop(self, key: Key, verdict: Verdict) -> None:
        self._let_through.discard(key)
        if is_idle_stop(verdict):
            self.book.memory.stopped.append(self.book.clock())
        task = asyncio.create_task(self._stop(key, verdict), name=f"stop {key[0]}/{key[1]}")
        self._stops[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: Key, task: asyncio.Task[None]) -> None:
        del self._stops[key]
        if not task.cancelled() and (error := task.exception()):
            log.error("stop went wrong: user=%r server=%r error=%r", *key, error, exc_info=error)

    async def _stop(self, key: Key, verdict: Verdict) -> None:
        facts, tools = self.book.judged[key].facts, self.tools

        async def still_due(hub: HubFacts, pod: PodFacts | None) -> bool:
            return await self._is_still_due(key, verdict, hub, pod)

        note("stopping", key, verdict.reason)
        outcome = await tools.stopper.stop(key, facts.pod, still_due)
        tools.metrics.stops.labels(verdict.reason, outcome).inc()
        note("stop-ended", key, verdict.reason, outcome=outcome)
        if outcome in _ENDED:
            self.book.observer.view.servers.pop(key, None)
            self.book.forget()
        if outcome in _ENDED - {Outcome.GONE}:
            tools.notifier.send(notices.receipt(*key, verdict, page=tools.page))
        if outcome in _BAD:
            pod = facts.pod or PodFacts()
            text = f"{facts.label}: pod {pod.name}, claims {', '.join(pod.claims) or 'none'}."
            tools.notifier.send(notices.alert(f"A stop ended badly: {outcome}", text))

    async def _is_still_due(self, key: Key, verdict: Verdict, hub: HubFacts, pod: PodFacts | None) -> bool:
        """Judge again what was read again; metrics are asked for anew unless they are of this moment."""
        book = self.book
        track = book.memory.tracks.get(key)
        if track is None or hub.started != track.started or (pod is None and book.observer.sees_pods):
            return False
        await book.observer.metrics(no_older_than=book.every / 2)
        again = book.look_again(key, hub, pod)
        return again.action is Action.STOP and again.limit == verdict.limit

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
        self._released_until = self.book.clock() + RELEASE
        self.gate = OPEN
        audit.info("audit: action=released by=%r until=%s", by, self._released_until.isoformat())

    async def _after_wish(self, key: Key) -> None:
        """Write a wish down, then do it: nobody has to repeat it after a restart."""
        await self.tools.store.save(self.book.memory)
        if key in self.book.observer.view.servers:
            self._settle(key, self.book.look(key, announces=False), in_pass=False)

    def outlook(self, key: Key) -> Outlook:
        """Say how things stand with a server that was judged."""
        judged, book = self.book.judged[key], self.book
        stopping = key in self._stops
        return Outlook(
            verdict=replace(judged.verdict, told=Told.STOPPING) if stopping else judged.verdict,
            track=book.memory.tracks[key],
            limits=judged.limits,
            acts=book.acts,
            has_page=has_page(judged.facts, book.clock()),
            handoff_url=f"{self.tools.handoff}?server={quote(key[1], safe='')}" if self.tools.handoff else "",
        )

    # --- what is counted, and who hears of trouble

    def _show(self) -> None:
        pods = [(one.verdict, one.facts.pod) for one in self.book.judged.values()]
        observer = self.book.observer
        problems = observer.view.problems
        self.tools.metrics.show(
            [(verdict, gpu_kind(pod), sum(pod.devices.values()) if pod else 0) for verdict, pod in pods],
            {name: name not in problems for name in observer.sources},
        )
        for name in observer.sources:
            problem = problems.get(name, "")
            self._alarms.set(name, f"No answer, clocks stand still: {problem}" if problem else "")

    async def drain(self) -> None:
        """Wait for the stops that are under way."""
        await asyncio.gather(*self._stops.values(), return_exceptions=True)

    async def close(self) -> None:
        """End the stops that are under way: what the hub was told goes on, the rest is due again later."""
        tasks = tuple(self._stops.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.tools.store.save(self.book.memory)
        await self.tools.notifier.close()


_ENDED: Final = frozenset(
    {Outcome.STOPPED, Outcome.UNVERIFIED, Outcome.POD_REMAINS, Outcome.CLAIM_GONE, Outcome.GONE}
)
_BAD: Final = frozenset({Outcome.POD_REMAINS, Outcome.CLAIM_GONE})
