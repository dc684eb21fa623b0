"""Which kernels wait for the user: `input()` and debuggers' prompts.

A kernel that waits so says that it is busy, and nothing else that a server keeps tells the difference. The
question passes the kernel's websocket, so a subclass of the server's own connection takes note of it. While
no kernel asks anything, that costs one comparison a message.

Shell: sits in the server's websockets.
"""

from __future__ import annotations

from typing import Any

from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1


class Inputs:
    """Kernels with a question that is not answered yet."""

    def __init__(self) -> None:
        self._asking: set[str] = set()

    def ask(self, kernel: str) -> None:
        """A kernel asked."""
        self._asking.add(kernel)

    def settle(self, kernel: str) -> None:
        """The question was answered, or the kernel gave up."""
        self._asking.discard(kernel)

    def asks(self, kernel: str, state: str) -> bool:
        """Whether a kernel waits; one that is no longer busy was interrupted or restarted."""
        if state != "busy":
            self.settle(kernel)
        return kernel in self._asking


def noting(connection: type[Any], inputs: Inputs) -> type[Any]:
    """A websocket connection of the given kind that also takes note of questions and answers."""

    class NotingConnection(connection):  # type: ignore[misc]
        def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
            if getattr(stream, "channel", stream) == "stdin":
                inputs.ask(self.kernel_id)
            super().handle_outgoing_message(stream, outgoing_msg)

        def handle_incoming_message(self, incoming_msg: Any) -> None:
            if inputs.asks(self.kernel_id, "busy") and _channel(incoming_msg, self.subprotocol) == "stdin":
                inputs.settle(self.kernel_id)
            super().handle_incoming_message(incoming_msg)

    return NotingConnection


def _channel(message: Any, subprotocol: str | None) -> str:
    """Which channel of the kernel a message of the browser is for; empty where it cannot be told."""
    if subprotocol == "v1.kernel.websocket.jupyter.org" and isinstance(message, bytes):
        return str(deserialize_msg_from_ws_v1(message)[0])  # type: ignore[no-untyped-call]
    # The older protocol: JSON, or binary with JSON in it, which keeps the channel in clear.
    text = message if isinstance(message, str) else bytes(message).decode(errors="replace")
    return "stdin" if '"channel":"stdin"' in text.replace(" ", "") else ""
