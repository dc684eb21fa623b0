"""Recording what was observed, one compressed file of JSON lines a day, for trying a policy on it later.

Names of users and servers are in it; names of documents, commands and notebooks are not.

Shell: writes files.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from .facts import FACTS, Facts
from .settings import Record
from .signal import is_due_again

log = logging.getLogger(__name__)

PREFIX: Final = "observed-"
SUFFIX: Final = ".jsonl.gz"


class Recorder:
    """Writes down all servers every few minutes."""

    def __init__(self, settings: Record) -> None:
        self._settings = settings
        self._last: datetime | None = None

    async def note(self, facts: Sequence[Facts], now: datetime) -> None:
        """Write down how servers are, if it is time to; a full disk costs the recording, not the pass."""
        if self._last is not None and not is_due_again(self._last, now, self._settings.every):
            return
        self._last = now
        try:
            await asyncio.to_thread(self._write, facts, now)
        except OSError as error:
            log.warning("not recorded: folder=%s error=%s", self._settings.folder, error)

    def _write(self, facts: Sequence[Facts], now: datetime) -> None:
        folder = self._settings.folder
        folder.mkdir(parents=True, exist_ok=True)
        reduced = (_reduced(one) for one in facts)
        lines = (json.dumps(FACTS.dump_python(one, mode="json", by_alias=True)) for one in reduced)
        with gzip.open(folder / f"{PREFIX}{now:%Y-%m-%d}{SUFFIX}", "at", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        oldest = f"{PREFIX}{now - timedelta(days=self._settings.days):%Y-%m-%d}{SUFFIX}"
        for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
            if path.name < oldest:
                path.unlink(missing_ok=True)


def _reduced(facts: Facts) -> Facts:
    agent = facts.agent
    if agent is None:
        return facts
    return replace(
        facts,
        agent=replace(
            agent,
            work=tuple(replace(one, command="") for one in agent.work),
            kernels=tuple(replace(one, name="") for one in agent.kernels),
            terminals=tuple(replace(one, foreground=one.foreground and "command") for one in agent.terminals),
        ),
    )


def recordings(path: Path) -> tuple[Path, ...]:
    """Name the files of a recording in the order of their days; a single file stands for itself."""
    return tuple(sorted(path.glob(f"{PREFIX}*{SUFFIX}"))) if path.is_dir() else (path,)
