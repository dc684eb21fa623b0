"""An idle-culler that obeys the protocol: it keeps what it is told, and answers what a test wants.

It refuses tokens that it does not know and messages that are not as agreed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from hub_ext.protocol import (
    Act,
    Answer,
    Button,
    Keep,
    Limit,
    Message,
    Report,
    Saved,
    SaveRequest,
    State,
    Stop,
)

PREFIX = "/services/idle-culler"
TOKEN = "the-server-s-own"
REPORT_SECONDS = 1
KEEP_SECONDS = 3600
MESSAGES: dict[str, type[Message]] = {"report": Report, "keep": Keep, "stop": Stop, "saved": Saved}
BUTTONS = (
    Button(act=Act.KEEP, label="Keep 1 h", text="2 left today"),
    Button(act=Act.SAVE_STOP, label="Save and stop"),
    Button(act=Act.STOP, label="Stop"),
)


class FakeCuller:
    """The service's state. Idle for a test's purposes: it never measures, it only answers."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        self.kept_until = 0.0
        self.deadline: float | None = None
        self.save: SaveRequest | None = None
        self.stopped = False
        self.report_seconds = REPORT_SECONDS
        self.failing = 0
        """HTTP status to answer with instead, 0 for none."""
        self.refusal = ""
        """The sentence that goes with it."""
        self._lock = threading.Lock()

    def take(self, message: Message) -> Answer:
        """Note a message and answer it."""
        with self._lock:
            self.received.append(message)
            if isinstance(message, Keep):
                self.kept_until = time.monotonic() + KEEP_SECONDS
                self.deadline = None
            if isinstance(message, Stop):
                self.save = SaveRequest(id=f"save-{len(self.received)}", seconds=60) if message.save else None
                self.stopped = not message.save
            if isinstance(message, Saved):
                if self.save is None or message.save != self.save.id:
                    raise ValueError(f"nobody asked for {message.save}")
                self.save, self.stopped = None, True
            return self._answer()

    def of(self, kind: type[Any]) -> list[Any]:
        """The messages of one kind so far, in order."""
        with self._lock:
            return [message for message in self.received if isinstance(message, kind)]

    def _answer(self) -> Answer:
        left = None if self.deadline is None else max(self.deadline - time.monotonic(), 0)
        if self.stopped:
            return self._say(State.STOPPING, "You asked for it.")
        if self.save:
            return self._say(State.SAVING, "You asked for it.")
        if left is not None:
            text = "Nothing has run here for 1 h 30 min: no kernel, no terminal and no GPU was in use."
            return self._say(State.WARNED, text, left)
        if (kept := self.kept_until - time.monotonic()) > 0:
            return self._say(State.KEPT, "You keep this server.", kept)
        return self._say(State.IN_USE, "A kernel is computing.")

    def _say(self, state: State, text: str, left: float | None = None) -> Answer:
        return Answer(
            state=state,
            reason=state.value,
            text=text,
            limit=Limit.IDLE if left is not None else None,
            seconds_left=left,
            stage=int(state is State.WARNED),
            buttons=BUTTONS if state is not State.STOPPING else (),
            lost=("Variables in kernels are lost.",),
            save=self.save,
            next_report_seconds=self.report_seconds,
        )


@contextmanager
def serving(culler: FakeCuller, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve it; yields the URL of its prefix."""
    with ThreadingHTTPServer((host, 0), _handler(culler)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{host}:{server.server_address[1]}{PREFIX}"
        finally:
            server.shutdown()
            thread.join()


def _handler(culler: FakeCuller) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kind = MESSAGES.get(urlsplit(self.path).path.removeprefix(f"{PREFIX}/api/"))
            if culler.failing:
                refusal = {"status": culler.failing, "message": culler.refusal}
                return self._say(culler.failing, json.dumps(refusal).encode() if culler.refusal else b"")
            if self.headers["Authorization"] != f"token {TOKEN}":
                return self._say(403, b"")
            if kind is None:
                return self._say(404, b"")
            try:
                answer = culler.take(kind.model_validate_json(body))
            except (ValidationError, ValueError) as error:
                return self._say(400, str(error).encode())
            return self._say(200, answer.model_dump_json().encode())

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """Say nothing."""

    return Handler
