"""The proxy on loopback, in front of a server that knows one blob."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.devcluster.addons.fault_proxy import FaultProxy, Proxy
from tests.devcluster.addons.faults import Fault, Kind

BODY = bytes(range(256)) * 1024
PATH = "/v2/ai/torch/blobs/sha256:0123"


async def _upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"connection: close" in head.lower(), "the proxy relays until the connection ends"
    if head.startswith(b"POST"):
        received = await reader.readexactly(len(BODY))
        answer = str(len(received)).encode()
    else:
        answer = BODY
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer)
    await writer.drain()
    writer.close()


def _address(server: asyncio.Server) -> str:
    host, port = server.sockets[0].getsockname()
    return f"{host}:{port}"


@pytest.fixture
async def address() -> AsyncIterator[str]:
    registry = await asyncio.start_server(_upstream, "127.0.0.1", 0)
    front = await Proxy().serve("127.0.0.1:0", _address(registry))
    async with registry, front:
        yield _address(front)


@pytest.fixture
def faults(address: str) -> FaultProxy:
    return FaultProxy(address)


async def fetch(address: str, *, method: str = "GET", body: bytes = b"") -> tuple[bytes, bytes]:
    """Head and body of one exchange."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{method} {PATH} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode() + body)
    raw = await reader.read()
    writer.close()
    head, _, answer = raw.partition(b"\r\n\r\n")
    return head, answer


async def test_without_faults_it_is_not_there(address: str) -> None:
    head, body = await fetch(address)
    assert head.startswith(b"HTTP/1.1 200")
    assert body == BODY


async def test_uploads_pass_whatever_their_coding(address: str) -> None:
    _, body = await fetch(address, method="POST", body=BODY)
    assert int(body) == len(BODY)


async def test_a_status_is_answered_in_the_registry_s_place(address: str, faults: FaultProxy) -> None:
    await asyncio.to_thread(faults.set, Fault(kind=Kind.BLOBS, status=503))
    head, body = await fetch(address)
    assert head.startswith(b"HTTP/1.1 503")
    assert b"injected" in body
    await asyncio.to_thread(faults.clear)
    assert (await fetch(address))[1] == BODY


async def test_a_body_is_cut_at_the_byte(address: str, faults: FaultProxy) -> None:
    await asyncio.to_thread(faults.set, Fault(kind=Kind.BLOBS, cut_after_bytes=100_001))
    assert (await fetch(address))[1] == BODY[:100_001]


async def test_a_hanging_request_goes_on_when_the_fault_is_lifted(address: str, faults: FaultProxy) -> None:
    await asyncio.to_thread(faults.set, Fault(kind=Kind.BLOBS, hang=True))
    hanging = asyncio.ensure_future(fetch(address))
    assert await asyncio.to_thread(faults.faults), "it answers others meanwhile"
    assert not hanging.done()
    await asyncio.to_thread(faults.clear)
    assert (await hanging)[1] == BODY


async def test_a_slow_body_becomes_fast_when_the_fault_is_lifted(address: str, faults: FaultProxy) -> None:
    await asyncio.to_thread(faults.set, Fault(kind=Kind.BLOBS, bytes_per_second=1))
    slow = asyncio.ensure_future(fetch(address))
    await asyncio.to_thread(faults.faults)
    assert not slow.done()
    await asyncio.to_thread(faults.clear)
    assert (await slow)[1] == BODY


async def test_faults_can_be_read_back(faults: FaultProxy) -> None:
    fault = Fault(kind=Kind.MANIFESTS, repository="ai/torch", status=429, times=3)
    await asyncio.to_thread(faults.set, fault)
    assert await asyncio.to_thread(faults.faults) == (fault,)


async def test_nonsense_is_refused_with_its_place(faults: FaultProxy) -> None:
    with pytest.raises(ValueError, match=r"0\.kind"):
        await asyncio.to_thread(faults._request, "PUT", '[{"kind": "tags", "hang": true}]')
