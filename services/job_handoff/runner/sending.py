"""What a run sends while it goes on and when it has ended, and what it gets back when it goes on again.

Shell: reads files, talks to the service.
"""

from __future__ import annotations

import fnmatch
import json
import os
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .client import Service
from .common import CHECKPOINTS, END, LOG, NEWS, NOTEBOOK, PATIENCE, RunError, say

MOST_REFUSED = 50
"""Refusals after which no other file is tried: a folder of very many would take hours."""


LARGEST_READ = 32 * 1024 * 1024
"""Bytes of a notebook that is looked into while it runs: the memory is the program's."""
SLOWEST = 1024 * 1024
"""Bytes per second: a large file that changes all the time is not sent all the time."""


class Sender:
    """Sends what is new; a file that has not changed since is not sent again."""

    def __init__(self, spec: dict[str, Any], service: Service, folder: Path, pod: str) -> None:
        self._spec, self._service, self._folder, self._pod = spec, service, folder, pod
        self._sent: dict[str, tuple[int, int]] = {}
        self._lost: dict[str, str] = {}
        self._refused = 0
        self._due = 0.0
        """When the notebook so far may be sent again."""
        self._leads = rank() == 0

    @property
    def lost(self) -> str:
        """Say what of the results is not kept, and why; empty if all of it is."""
        names = [name for name in self._lost if name.startswith("outputs/")]
        if not names:
            return ""
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"{names[0]}{more}: {self._lost[names[0]]}"

    def round(self, patience: float = 0.0) -> None:
        """Send the log, the notebook so far and new checkpoints; of several pods only the first has any."""
        self._put(LOG, f"logs/{self._pod}.log", patience)
        if not self._leads:
            return
        if note_progress():
            self._put(NEWS, "logs/progress.json", patience)
        if self._spec["notebook"] and (patience or time.monotonic() >= self._due):
            self._put(NOTEBOOK, f"outputs/{Path(self._spec['entry']['path']).name}", patience)
            self._due = time.monotonic() + (NOTEBOOK.stat().st_size if NOTEBOOK.exists() else 0) / SLOWEST
        if self._spec["checkpoints"]:
            for file in _files(CHECKPOINTS):
                if not file.name.endswith((".tmp", ".part")):
                    self._put(file, f"checkpoints/{file.relative_to(CHECKPOINTS).as_posix()}", patience)

    def results(self, patience: float) -> None:
        """Send the files that the run is to keep."""
        if not self._leads:
            return
        for file in _files(self._folder):
            name = file.relative_to(self._folder).as_posix()
            if any(
                fnmatch.fnmatchcase(name, pattern.replace("**", "*")) for pattern in self._spec["outputs"]
            ):
                self._put(file, name if name.startswith("outputs/") else f"outputs/{name}", patience)

    def last_word(self, patience: float) -> None:
        """Send why it ended: a pod that lives on, as the head of a Ray cluster, cannot say it by ending."""
        if self._leads:
            self._put(END, "logs/end.json", patience)

    def _put(self, file: Path, name: str, patience: float) -> None:
        try:
            about = file.stat()
        except FileNotFoundError:
            return
        mark = (about.st_mtime_ns, about.st_size)
        if self._sent.get(name) == mark:
            return
        if problem := self._problem(name, about.st_size):
            self._sent[name] = mark
            self._lose(name, problem)
            return
        try:
            self._service.put(name, file, patience)
        except RunError as error:
            self._refused += 1
            self._lose(name, str(error))
            return
        except OSError as error:
            self._lose(name, str(error))
            return
        self._sent[name] = mark
        self._lost.pop(name, None)

    def _problem(self, name: str, size: int) -> str:
        """Say why a file need not be tried; empty if it is."""
        if size > self._spec["fileSize"]:
            return f"it is too large ({size} bytes)"
        try:
            name.encode()
        except UnicodeEncodeError:
            return "its name is no text"
        if self._refused >= MOST_REFUSED and not name.startswith("logs/"):
            return "too many others were refused before it"
        return ""

    def _lose(self, name: str, why: str) -> None:
        if name not in self._lost and len(self._lost) < MOST_REFUSED:
            say(f"could not send {name}: {why}")
        self._lost[name] = why


def rank() -> int:
    """Say which of several pods this is: Trainer and indexed Jobs count them."""
    for name in ("PET_NODE_RANK", "JOB_COMPLETION_INDEX"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def note_progress() -> bool:
    """Write down how far the notebook is and when the last checkpoint was made; says whether that is news."""
    news: dict[str, Any] = {}
    try:
        large = NOTEBOOK.stat().st_size > LARGEST_READ
        whole = {} if large else json.loads(NOTEBOOK.read_text(encoding="utf-8"))
        cells = [cell for cell in whole["cells"] if cell["cell_type"] == "code"]
        states = [cell["metadata"].get("papermill", {}).get("status") for cell in cells]
        news = {"cells": len(cells), "done": sum(1 for state in states if state == "completed")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        news = {}  # no notebook, a large one, or it is being written at this moment
    times = [file.stat().st_mtime for file in _files(CHECKPOINTS)]
    if times:
        news["checkpoint"] = max(times)
    text = json.dumps(news)
    if not news or (NEWS.exists() and NEWS.read_text() == text):
        return False
    NEWS.write_text(text)
    return True


def _files(folder: Path) -> Iterator[Path]:
    """Give the files below a folder; links are not followed."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = Path(root) / name
            if file.is_file() and not file.is_symlink():
                yield file


def restore(spec: dict[str, Any], service: Service) -> bool:
    """Bring the checkpoints of earlier attempts; gives whether there are any."""
    CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    found = service.ask("checkpoints", PATIENCE)
    if not spec["checkpoints"]:
        # They are in the team's own bucket: what is known is whether somebody may have made some.
        return bool(found["attempts"]) or bool(spec["continues"])
    names = found["files"]
    for name in names:
        target = CHECKPOINTS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        service.get(f"checkpoint?name={urllib.parse.quote(name)}", target)
    return bool(names)
