"""The last report of each workspace.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hub_ext.protocol import Report

from .facts import AgentFacts
from .reports import reduce_report

Key = tuple[str, str]
MOST: Final = 100
"""Servers of one user: their names are the user's word until the next list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letter:
    agent: str
    number: int
    facts: AgentFacts
    unsaved: tuple[str, ...]


class Inbox:
    """Reports by server."""

    def __init__(self) -> None:
        self._letters: dict[Key, _Letter] = {}

    def put(self, user: str, report: Report, received: datetime) -> None:
        """Take a report.

        One that is older than what is here, by its own count, is left out, and so are those of more servers
        than anybody has.
        """
        key = user, report.server
        last = self._letters.get(key)
        if last is None and sum(one[0] == user for one in self._letters) >= MOST:
            return
        if last is not None and last.agent == report.agent and report.number <= last.number:
            return
        self._letters[key] = _Letter(
            agent=report.agent,
            number=report.number,
            facts=reduce_report(report, received),
            unsaved=tuple(one.path for one in report.documents or ()),
        )

    def facts(self, key: Key, *, since: datetime | None) -> AgentFacts | None:
        """Give what a workspace says; reports of a session before count for nothing."""
        letter = self._letters.get(key)
        if letter is None or (since is not None and letter.facts.at < since):
            return None
        return letter.facts

    def unsaved(self, key: Key) -> tuple[str, ...]:
        """Name the documents with changes."""
        letter = self._letters.get(key)
        return letter.unsaved if letter else ()

    def keep_only(self, keys: Container[Key]) -> None:
        """Drop reports of all other servers."""
        self._letters = {key: one for key, one in self._letters.items() if key in keys}
