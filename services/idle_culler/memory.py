"""What outlives a restart: one file with all clocks, warnings, keeps and stops of late.

A file that cannot be read is set aside, and everything begins anew: clocks at zero stop nobody.

Shell: reads and writes a file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from .facts import Moment
from .track import TRACK, TRACKS, Track

log = logging.getLogger(__name__)

FORMAT: Final = 1
_MOMENTS: Final = TypeAdapter(tuple[Moment, ...])


@dataclass(slots=True, kw_only=True)
class Memory:
    """What is remembered about all servers."""

    tracks: dict[tuple[str, str], Track] = field(default_factory=dict)
    stopped: list[datetime] = field(default_factory=list)
    """When idle servers were stopped, of late."""
    held_since: datetime | None = None
    """Since when more than may be would be stopped at once."""


class Store:
    """The file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._written = b""
        self._lines: dict[tuple[str, str], tuple[Track, bytes]] = {}
        """Tracks as they were written: what did not change since, which is nearly all where one user wishes
        something, need not be written out anew."""
        self._pen = ThreadPoolExecutor(max_workers=1, thread_name_prefix="state")
        """One, so that saves follow each other, whatever becomes of those who wait for them."""

    def load(self) -> Memory:
        """Read the file; without one there is nothing to remember."""
        if self._path is None or not self._path.exists():
            return Memory()
        try:
            return _read(json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            aside = self._path.with_name(f"{self._path.name}.unreadable")
            self._path.replace(aside)
            log.error("state not read, all clocks begin anew: aside=%s error=%r", aside, error)
            return Memory()

    async def save(self, memory: Memory) -> None:
        """Write what is remembered at this moment, as a whole or not at all.

        What cannot be written now is written next time.
        """
        if self._path is None:
            return
        snapshot = Memory(
            tracks=dict(memory.tracks), stopped=list(memory.stopped), held_since=memory.held_since
        )
        await asyncio.get_running_loop().run_in_executor(self._pen, self._write, self._path, snapshot)

    def _write(self, path: Path, memory: Memory) -> None:
        text = self._text(memory)
        if text == self._written:
            return
        part = path.with_name(f"{path.name}.part")
        try:
            with part.open("wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            log.error("state not written: path=%s error=%s", path, error)
            return
        self._written = text

    def _text(self, memory: Memory) -> bytes:
        before, self._lines = self._lines, {}
        for key, track in memory.tracks.items():
            known = before.get(key)
            # One by one: a single call for all would hold the interpreter, and with it the event loop.
            line = known[1] if known and known[0] is track else TRACK.dump_json(track, by_alias=True)
            self._lines[key] = track, line
        about = {
            "format": FORMAT,
            "stopped": _MOMENTS.dump_python(tuple(memory.stopped), mode="json"),
            "heldSince": memory.held_since.isoformat() if memory.held_since else None,
        }
        tracks = b",\n".join(line for _, line in self._lines.values())
        return json.dumps(about)[:-1].encode() + b', "tracks": [\n' + tracks + b"\n]}\n"


def _read(data: Any) -> Memory:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r} is not {FORMAT}")
    tracks = TRACKS.validate_python(data["tracks"])
    held = _MOMENTS.validate_python((data["heldSince"],)) if data["heldSince"] else (None,)
    return Memory(
        tracks={one.key: one for one in tracks},
        stopped=list(_MOMENTS.validate_python(data["stopped"])),
        held_since=held[0],
    )
