"""What the cluster has for each kind of workspace, worked out once for all who look.

A page of 100 profiles on 1,000 nodes asks 100,000 questions, and 64 pages are asked for in the same moment.
So the nodes of a pool are kept until a node changes, and an answer for one second.

Pure: no clock, no network.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ..catalog.model import Pool
from ..quota.arithmetic import Resources
from .capacity import Availability, Candidates
from .snapshot import Snapshot

FRESH: Final = timedelta(seconds=1)
"""How old an answer may be: less than people notice, and the start itself is checked anew."""


class Supplies:
    """Answers of late, by pool and what is asked for."""

    def __init__(self) -> None:
        self._nodes: object = None
        self._candidates: dict[tuple[str, Resources], Candidates] = {}
        self._answers: dict[tuple[str, Resources], tuple[datetime, Availability]] = {}

    def of(self, snapshot: Snapshot, asked: Resources, pool: Pool | None, pool_name: str) -> Availability:
        """Say how many more workspaces of a kind could be placed, as of at most a second ago."""
        key = (pool_name, asked)
        known = self._answers.get(key)
        if known is not None and snapshot.taken - known[0] < FRESH:
            return known[1]
        if snapshot.nodes is not self._nodes:
            self._nodes, self._candidates = snapshot.nodes, {}
        if key not in self._candidates:
            self._candidates[key] = snapshot.candidates(asked, pool)
        answer = snapshot.availability(asked, pool, pool_name=pool_name, where=self._candidates[key])
        self._answers[key] = (snapshot.taken, answer)
        return answer
