"""Which of the stops that are due happen now: none while rules are tried out, nor more than the breaker lets.

Shell in that it holds what changes, and tells admins; it asks nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from .alarms import Alarms, audit, note
from .book import Book
from .breaker import OPEN, WINDOW, Gate, Pulse, check, is_end, is_idle_stop
from .observe import Key
from .reasons import Reason, sentence
from .verdict import Action, Verdict

RELEASE: Final = timedelta(hours=1)
"""How long an admin's word lets stops through that the breaker would hold."""


class Gatekeeper:
    """Judges passes as a whole, and what a pass lets through."""

    def __init__(self, book: Book, alarms: Alarms) -> None:
        self._book, self._alarms = book, alarms
        self.gate = OPEN
        """How many idle servers may be stopped at present."""
        self._allowance = 0
        self._quiet_until = book.clock() + book.policy.grace
        self._released_until: datetime | None = None
        self._would_stop: set[Key] = set()
        """Servers of which the audit log says that they would be stopped."""
        self._let_through: set[Key] = set()
        """Servers that may be stopped and whose stop has not begun: they are being saved."""

    def begin_grace(self) -> None:
        """Hold idle stops for a while: what is known may be old."""
        self._quiet_until = self._book.clock() + self._book.policy.grace

    def release(self, *, by: str) -> None:
        """Let idle servers be stopped for a while although the breaker would hold them."""
        self._released_until = self._book.clock() + RELEASE
        self.gate = OPEN
        audit.info("audit: action=released by=%r until=%s", by, self._released_until.isoformat())

    def judge_pass(self, verdicts: Mapping[Key, Verdict], *, stopping: Collection[Key]) -> None:
        """Say how many idle servers may be stopped, now that all have been looked at.

        Parameters
        ----------
        stopping
            Servers whose stop is under way: they were counted when it began.
        """
        self.gate = self._gate(verdicts, stopping)
        self._would_stop &= {key for key, verdict in verdicts.items() if is_end(verdict)}
        self._let_through &= {key for key, verdict in verdicts.items() if is_idle_stop(verdict)}
        self._allowance = (self.gate.allowance or 0) - len(self._let_through)

    def _gate(self, verdicts: Mapping[Key, Verdict], stopping: Collection[Key]) -> Gate:
        book, now = self._book, self._book.clock()
        memory = book.memory
        memory.stopped = [one for one in memory.stopped if one > now - WINDOW]
        if now < self._quiet_until:
            return Gate(reason=Reason.GRACE)
        if self._released_until is not None and now < self._released_until:
            return OPEN
        pulse = Pulse.of([verdict for key, verdict in verdicts.items() if key not in stopping])
        gate = check(pulse, book.policy.breaker, stopped=memory.stopped, since=memory.held_since, now=now)
        memory.held_since = gate.since
        self._alarms.set("breaker", sentence(gate.reason) if gate.reason and book.acts else "")
        return gate

    def why_held(self, key: Key, verdict: Verdict, *, in_pass: bool) -> Reason | None:
        """Say why a stop that is due does not happen; None where it does, or where none is due.

        Parameters
        ----------
        in_pass
            All servers are being looked at, so that it is known how many would be stopped.
        """
        if is_end(verdict) and not self._book.acts:
            if key not in self._would_stop:
                self._would_stop.add(key)
                note("would-stop", key, verdict.reason)
            return Reason.OBSERVE_ONLY
        self._would_stop.discard(key)
        if is_idle_stop(verdict):
            return self._why_gate_holds(key, verdict, in_pass=in_pass)
        self._let_through.discard(key)
        return None

    def _why_gate_holds(self, key: Key, verdict: Verdict, *, in_pass: bool) -> Reason | None:
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

    def forget(self, key: Key) -> None:
        """Drop what was let through: its stop begins, or it is held after all."""
        self._let_through.discard(key)
