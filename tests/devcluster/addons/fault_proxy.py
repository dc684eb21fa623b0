"""A proxy in front of a registry that is slow, fails, cuts or hangs when told to.

`python -m tests.devcluster.addons.fault_proxy LISTEN=UPSTREAM …`, each a `host:port`. Faults are the same for
all pairs and are set over HTTP at any listening address: `GET`, `PUT` (a list of `Fault`s) or `DELETE` of
`/faults`; `FaultProxy` does it from Python, from any process.

Shell: relays HTTP/1.1. Every answer ends its connection, so a response is relayed without being understood.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from http import HTTPStatus

from pydantic import TypeAdapter, ValidationError

from tests.devcluster.addons.faults import Fault, FaultBook, refusal
from tests.devcluster.waiting import PATIENCE_SECONDS

CONTROL_PATH = "/faults"
CHUNK = 16 * 1024
MAX_HEAD = 64 * 1024
FAULTS = TypeAdapter(list[Fault])


class FaultProxy:
    """Sets and lifts the faults of a running proxy."""

    def __init__(self, address: str) -> None:
        self.address = address
        """`host:port` of the proxy."""

    def set(self, *faults: Fault) -> None:
        """Replace all faults by these; requests that hang because of another one go on."""
        self._request("PUT", json.dumps([fault.model_dump(mode="json") for fault in faults]))

    def clear(self) -> None:
        """Lift all faults."""
        self._request("DELETE")

    def faults(self) -> tuple[Fault, ...]:
        """The faults that are set."""
        return tuple(FAULTS.validate_json(self._request("GET")))

    @contextlib.contextmanager
    def injected(self, *faults: Fault) -> Iterator[None]:
        """Set faults for the length of a `with` block."""
        self.set(*faults)
        try:
            yield
        finally:
            self.clear()

    def _request(self, method: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, CONTROL_PATH, body)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise ValueError(f"fault proxy at {self.address}: {response.status} {answer.decode()}")
        return answer


class Head:
    """The head of an HTTP request."""

    def __init__(self, raw: bytes) -> None:
        self.line, *headers = raw.decode("latin-1").split("\r\n")
        self.method, self.path, _ = self.line.split(" ", 2)
        self.headers = [header for header in headers if header]

    def header(self, name: str) -> str:
        prefix = name.lower() + ":"
        return next((h[len(prefix) :].strip() for h in self.headers if h.lower().startswith(prefix)), "")

    def to_upstream(self) -> bytes:
        """The head to send on, asking that the connection ends with the answer."""
        kept = [header for header in self.headers if not header.lower().startswith("connection:")]
        return "\r\n".join([self.line, *kept, "Connection: close", "", ""]).encode("latin-1")


class Proxy:
    """The server behind `FaultProxy`."""

    def __init__(self) -> None:
        self.book = FaultBook()
        self._changed = asyncio.Event()

    async def serve(self, listen: str, upstream: str) -> asyncio.Server:
        """Listen at one address for one registry."""

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # The far end of either connection may go at any time: that ends this exchange and no other.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._handle(reader, writer, upstream)
            writer.close()

        host, port = listen.rsplit(":", 1)
        return await asyncio.start_server(handle, host, int(port), limit=MAX_HEAD)

    async def _handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: str
    ) -> None:
        head = Head((await reader.readuntil(b"\r\n\r\n"))[:-4])
        if head.path == CONTROL_PATH:
            writer.write(
                self._control(head, await reader.readexactly(int(head.header("Content-Length") or 0)))
            )
            await writer.drain()
            return
        fault = self.book.take(head.path)
        if fault and fault.hang:
            await self._lifted(fault, reader)
            fault = None
        if fault and fault.status:
            writer.write(refusal(fault, head=head.method == "HEAD"))
            await writer.drain()
            return
        async with _connection(upstream) as (answer, request):
            request.write(head.to_upstream())
            upload = asyncio.ensure_future(_pump(reader, request))
            try:
                writer.write(await answer.readuntil(b"\r\n\r\n"))
                await self._relay(answer, writer, fault)
            finally:
                upload.cancel()

    async def _relay(
        self, answer: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault | None
    ) -> None:
        sent, began = 0, time.monotonic()
        while chunk := await answer.read(CHUNK):
            active = fault if fault and self.book.holds(fault) else None
            if active and active.cut_after_bytes is not None and sent + len(chunk) > active.cut_after_bytes:
                writer.write(chunk[: active.cut_after_bytes - sent])
                await writer.drain()
                return
            writer.write(chunk)
            await writer.drain()
            sent += len(chunk)
            if active and active.bytes_per_second:
                await self._pause(sent / active.bytes_per_second - (time.monotonic() - began))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until the faults change."""
        if seconds > 0:
            changed = self._changed
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), seconds)

    async def _lifted(self, fault: Fault, reader: asyncio.StreamReader) -> None:
        """Wait until a fault is lifted; raises `ConnectionError` if the client gives up before."""
        gone = asyncio.ensure_future(reader.read(1))
        try:
            while self.book.holds(fault):
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({gone, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if gone.done():
                    raise ConnectionAbortedError("the client gave up")
        finally:
            gone.cancel()

    def _control(self, head: Head, body: bytes) -> bytes:
        try:
            if head.method in ("PUT", "DELETE"):
                self.book = FaultBook(FAULTS.validate_json(body) if head.method == "PUT" else [])
                self._changed.set()
                self._changed = asyncio.Event()
            return _response(HTTPStatus.OK, FAULTS.dump_json(list(self.book.faults)))
        except ValidationError as error:
            return _response(HTTPStatus.BAD_REQUEST, str(error).encode())


def _response(status: HTTPStatus, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


@contextlib.asynccontextmanager
async def _connection(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port), limit=MAX_HEAD)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _pump(reader: asyncio.StreamReader, request: asyncio.StreamWriter) -> None:
    """Send on what follows the request's head, of whatever length and coding, until one end closes."""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK):
            request.write(chunk)
            await request.drain()


async def main(pairs: Sequence[str]) -> None:
    """Serve until killed."""
    proxy = Proxy()
    servers = [await proxy.serve(*pair.split("=")) for pair in pairs]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
