"""The user's program: its command line and its processes.

Shell: starts processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from .common import LOG, NOTEBOOK, NOTICE, TOLD_NOTEBOOK, RunError

EXECUTE = """import json, logging, sys
import papermill
logging.basicConfig(level="INFO", format="%(message)s")
with open(sys.argv[1], encoding="utf-8") as file:
    told = json.load(file)
papermill.execute_notebook(**told)
"""
"""Papermill's own command reads parameters as YAML, to which `1e-05` is a text, and so are most emoji."""


def command_of(spec: dict[str, Any], folder: Path) -> list[str]:
    """Give the command line of the program; no shell reads any of it."""
    entry = spec["entry"]
    path = f"./{entry['path']}"
    if not (folder / entry["path"]).is_file():
        raise RunError("entry-missing", f"there is no file {entry['path']!r} in the source")
    if entry["type"] == "script":
        launcher = {"python": [sys.executable, "-u"], "bash": ["bash"], "torchrun": ["torchrun"]}[
            entry["launcher"]
        ]
        return [*launcher, path, *entry["arguments"]]
    told = {
        "input_path": _braced(path),
        "output_path": _braced(str(NOTEBOOK)),
        "cwd": str((folder / path).parent),
        "parameters": entry["parameters"],
        "language": language_of(folder / path),
        "progress_bar": False,
        "log_output": True,
        "autosave_cell_every": 10,
    }
    told.update({"kernel_name": entry["kernel"]} if entry.get("kernel") else {})
    TOLD_NOTEBOOK.write_text(json.dumps(told), encoding="utf-8")
    return [sys.executable, "-c", EXECUTE, str(TOLD_NOTEBOOK)]


def _braced(path: str) -> str:
    """Write a path so that papermill, which fills parameters into paths, takes it as it is."""
    return path.replace("{", "{{").replace("}", "}}")


def language_of(notebook: Path) -> str:
    """Give the language that a notebook is written in; many do not say it, and are in Python."""
    try:
        metadata = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]
    except (OSError, ValueError, KeyError, TypeError):
        return "python"
    found = (metadata.get("kernelspec") or {}).get("language")
    return str(found or (metadata.get("language_info") or {}).get("name") or "python")


class Program:
    """The user's program with everything that it starts, as one group of processes."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str], size: int) -> None:
        self._size = size
        self.ending = False
        """Whether the cluster wants it to end."""
        try:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise RunError("launcher-missing", f"{command[0]}: {error.strerror or error}") from error
        assert self._process.stdout is not None  # noqa: S101 - it was asked for above
        self._output = self._process.stdout.fileno()
        self._copier = threading.Thread(target=self._copy, daemon=True)
        self._copier.start()

    def _copy(self) -> None:
        """Copy what it says to the pod's log and, its last part, to a file."""
        with LOG.open("ab") as file:
            while chunk := os.read(self._output, 65536):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
                file.write(chunk)
                file.flush()
                if file.tell() > 2 * self._size:
                    _cut(LOG, self._size)
                    file.seek(0, os.SEEK_END)

    def end(self) -> None:
        """Tell the whole group to end: papermill alone would not pass it on to the kernel."""
        self.ending = True
        NOTICE.touch()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End what is left of the group."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # all of it has ended
            os.killpg(self._process.pid, number)

    def wait(self, seconds: float) -> int | None:
        """Wait for it, at most so long; gives its exit status, or None while it runs."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._copier.join(5)
        return status


def _cut(file: Path, size: int) -> None:
    """Keep the last part of a file."""
    with file.open("r+b") as opened:
        opened.seek(-size, os.SEEK_END)
        rest = opened.read()
        opened.seek(0)
        opened.write(rest)
        opened.truncate()


def memory_kills() -> int | None:
    """Count the kills for memory in this container; None where the kernel does not say."""
    for file in (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control")):
        try:
            lines = file.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            word, _, number = line.partition(" ")
            if word == "oom_kill":
                return int(number)
    return None


def kernels() -> list[str]:
    """Name the kernels of this image, for the one who asked for another."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "jupyter", "kernelspec", "list", "--json"],
            capture_output=True,
            timeout=60,
            check=False,
        )
        return sorted(json.loads(done.stdout)["kernelspecs"])
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
        return []
