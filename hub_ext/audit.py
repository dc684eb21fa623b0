"""What is kept about starts: one line of JSON each, in a file and in the log.

The file is what `gpu-workspaces phases` reads, and what "usually takes" is taken from after a hub restart.
It names no user; the log line does, for those who may read the hub's log.

Shell: writes a file and the log.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .cluster.starts import StartRecord, usual
from .cluster.waits import Usual
from .errors import BadValueError

log = logging.getLogger(__name__)

KEPT: Final = 5000
"""Starts that are remembered: enough for a P95 of each profile, and read in well under a second."""
LARGEST_FILE: Final = 32 * 1024 * 1024
"""Bytes; then the file is set aside as ``<name>.1``, in place of the one set aside before."""


class StartLog:
    """The starts of late, and their file."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._records: deque[StartRecord] = deque(maxlen=KEPT)
        self._usual: dict[tuple[str, str], dict[str, Usual]] = {}
        if path is not None and path.exists():
            with path.open(encoding="utf-8") as lines:
                self._records.extend(read_records(lines, name=str(path)))

    @property
    def records(self) -> tuple[StartRecord, ...]:
        return tuple(self._records)

    def add(self, record: StartRecord, *, user: str = "") -> None:
        """Keep a start. A file that cannot be written costs the record, not the start."""
        self._records.append(record)
        self._usual.pop((record.profile, record.pool), None)
        log.info(
            "start ended: user=%s profile=%s version=%s pool=%s outcome=%s reason=%s seconds=%s phases=%s",
            user,
            record.profile,
            record.version,
            record.pool,
            record.outcome.value,
            record.reason,
            record.seconds,
            dict(record.phases),
        )
        if self._path is None:
            return
        try:
            self._append(self._path, record)
        except OSError as error:
            log.warning("start not recorded: path=%s error=%s", self._path, error)

    def _append(self, path: Path, record: StartRecord) -> None:
        if path.exists() and path.stat().st_size >= LARGEST_FILE:
            path.replace(path.with_name(f"{path.name}.1"))
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record.as_dict(), ensure_ascii=False) + "\n")

    def usual(self, *, profile: str, pool: str, image: str = "") -> Usual:
        """Say what starts of this kind usually take, perhaps with one image; a page asks it of each one."""
        known = self._usual.setdefault((profile, pool), {})
        if image not in known:
            known[image] = usual(self._records, profile=profile, pool=pool, image=image)
        return known[image]


def read_records(lines: Iterable[str], *, name: str) -> Iterator[StartRecord]:
    """Read lines of the log; what is no record, such as a line cut by a crash, is reported and left out."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield StartRecord.from_dict(json.loads(line))
        except (BadValueError, ValueError, AttributeError) as error:
            log.warning("start log: line left out: file=%s line=%d error=%s", name, number, error)
