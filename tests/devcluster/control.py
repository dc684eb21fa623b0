"""How other processes tell a supervisor to stop and start programs: one line of JSON each way, on a socket.

Shell: sockets.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from tests.devcluster.errors import DevClusterError, StateError
from tests.devcluster.processes import Process, Processes

SOCKET = "control.sock"
TIMEOUT_SECONDS = 120


class Verb(StrEnum):
    LIST = "list"
    STOP = "stop"
    """SIGTERM, later SIGKILL."""
    KILL = "kill"
    """SIGKILL, as a crash would."""
    START = "start"
    """Again, as it was; a running one is stopped first."""


def ask(state_dir: Path, verb: Verb, process: str = "") -> str:
    """Send one request; returns the answer's text or raises `StateError`."""
    try:
        with socket.socket(socket.AF_UNIX) as client, _short_path(state_dir) as path:
            client.settimeout(TIMEOUT_SECONDS)
            client.connect(path)
            client.sendall(json.dumps({"verb": verb, "process": process}).encode() + b"\n")
            answer = json.loads(client.makefile().readline())
    except (OSError, ValueError) as error:
        raise StateError(
            f"cluster {state_dir.name!r}",
            f"does not answer: {error}",
            "see `python -m tests.devcluster status`",
        ) from error
    if "error" in answer:
        raise StateError(f"{verb} {process}:", answer["error"], f"logs are in {state_dir / 'logs'}")
    return str(answer["text"])


def serve(state_dir: Path, processes: Processes) -> None:
    """Answer requests in a thread until this process ends."""
    server = socket.socket(socket.AF_UNIX)
    (state_dir / SOCKET).unlink(missing_ok=True)
    with _short_path(state_dir) as path:
        server.bind(path)
    (state_dir / SOCKET).chmod(0o600)
    server.listen()
    threading.Thread(target=_accept, args=(server, processes), daemon=True, name="control").start()


@contextlib.contextmanager
def _short_path(state_dir: Path) -> Iterator[str]:
    """The socket's path by way of an open folder: socket paths end at 107 characters."""
    folder = os.open(state_dir, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)


def _accept(server: socket.socket, processes: Processes) -> None:
    while True:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):  # a client that went away wants no answer
            connection.settimeout(TIMEOUT_SECONDS)
            answer = _answer(connection.makefile().readline(), processes)
            connection.sendall(json.dumps(answer).encode() + b"\n")


def _answer(line: str, processes: Processes) -> dict[str, str]:
    try:
        request = json.loads(line)
        verb = Verb(request["verb"])
        chosen = processes.all() if verb is Verb.LIST else [processes.get(request["process"])]
    except (ValueError, KeyError, DevClusterError) as error:
        return {"error": str(error)}
    for process in chosen:
        act(process, verb)
    return {"text": "\n".join(describe(process) for process in chosen)}


def act(process: Process, verb: Verb) -> None:
    match verb:
        case Verb.STOP:
            process.stop()
        case Verb.KILL:
            process.kill()
        case Verb.START:
            process.restart()
        case Verb.LIST:
            pass


def describe(process: Process) -> str:
    """One line: name, state, log."""
    code = process.poll()
    ended = "stopped" if process.stopped else f"died ({code})"
    state = f"runs ({process.pid})" if code is None else ended
    return f"{process.name:32} {state:16} {process.log}"
