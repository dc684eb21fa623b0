"""The watch against an API server that is played: what it asks, and what it makes of the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from kubernetes_asyncio.client import ApiClient

from hub_ext.cluster import watch as module
from hub_ext.cluster.bookings import Bookings
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.sources import DeniedError, Source, lines, sources
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.watch import ClusterWatch, Health
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import Weights
from hub_ext.quota.ledger import SETTLE
from hub_ext.quota.usage import Holding, Owner
from tests.unit.cluster.objects import NOW, make_pod

DEADLINE = 240


class Answer:
    """A response of aiohttp, as far as it is used."""

    def __init__(self, status: int = 200, body: Any = None, chunks: list[bytes] | None = None) -> None:
        self.status = status
        self._body = json.dumps(body or {}).encode()
        self._chunks = chunks or []
        self.content = self
        self.released = False

    async def read(self) -> bytes:
        return self._body

    async def text(self) -> str:
        return self._body.decode()

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        await asyncio.get_running_loop().create_future()

    def release(self) -> None:
        self.released = True

    def close(self) -> None:
        self.released = True


def page(*pods: dict[str, Any], version: str = "10", token: str = "") -> Answer:
    return Answer(body={"metadata": {"resourceVersion": version, "continue": token}, "items": list(pods)})


def stream(*changes: tuple[str, dict[str, Any]], end: bool = False) -> Answer:
    lines = b"".join(json.dumps({"type": kind, "object": item}).encode() + b"\n" for kind, item in changes)
    answer = Answer(chunks=[lines])
    if end:
        answer.iter_any = lambda: _finite([lines])  # type: ignore[method-assign]
    return answer


async def _finite(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


class Server:
    """Gives prepared answers in order and remembers what it was asked; the last one is given for ever."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, **query: Any) -> Answer:
        self.asked.append({key: value for key, value in query.items() if not key.startswith("_")})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def watching(
    server: Server, *, required: bool = True, kind: Kind = Kind.PODS
) -> AsyncIterator[ClusterWatch]:
    source = Source(kind=kind, namespace="hub", call=server, required=required)
    watch = ClusterWatch(ClusterState(Weights(by_pool={}, by_resource={})), [source])
    await watch.start()
    try:
        yield watch
    finally:
        await watch.stop()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - each turn lets the watch go on
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    for name in ("FIRST_DELAY", "LONGEST_DELAY", "DENIED_DELAY"):
        monkeypatch.setattr(module, name, 0.001)


async def test_a_list_in_pages_then_changes_from_its_version() -> None:
    server = Server(
        page(make_pod("jupyter-a", uid="a"), token="more"),
        page(make_pod("jupyter-b", uid="b"), version="12"),
        stream(("DELETED", make_pod("jupyter-a", uid="a")), ("ADDED", make_pod("jupyter-c", uid="c"))),
    )
    async with watching(server) as watch:
        await watch.loaded()
        await until(lambda: watch.pod("hub", "jupyter-c"))
        assert watch.pod("hub", "jupyter-a") is None
        assert watch.health() == {"pods in hub": Health.LIVE}
    assert [asked.get("resource_version") for asked in server.asked] == [None, None, "12"]


async def test_it_goes_on_from_the_last_bookmark_without_another_list() -> None:
    bookmark = {"kind": "Pod", "metadata": {"resourceVersion": "77"}}
    server = Server(page(), stream(("BOOKMARK", bookmark), end=True), stream())
    async with watching(server):
        await until(lambda: len(server.asked) == 3)
    assert server.asked[2]["resource_version"] == "77"
    assert server.asked[2]["allow_watch_bookmarks"] is True


@pytest.mark.parametrize(
    "too_old",
    [
        Answer(410, {"message": "too old resource version"}),
        stream(("ERROR", {"code": 410, "message": "too old resource version"})),
    ],
)
async def test_a_version_that_is_too_old_means_another_list(too_old: Answer) -> None:
    server = Server(
        page(make_pod("jupyter-a", uid="a")), too_old, page(make_pod("jupyter-b", uid="b")), stream()
    )
    async with watching(server) as watch:
        await until(lambda: watch.pod("hub", "jupyter-b"))
        await until(lambda: watch.pod("hub", "jupyter-a") is None)


async def test_a_lost_connection_keeps_what_was_known_and_tries_again() -> None:
    lost = aiohttp.ClientConnectionError("reset")
    server = Server(page(make_pod()), lost, lost, stream(("MODIFIED", make_pod(node="n1"))))
    async with watching(server) as watch:
        await until(lambda: (pod := watch.pod("hub", "jupyter-ada")) and pod.node)
        assert watch.health() == {"pods in hub": Health.LIVE}
    assert [bool(asked.get("watch")) for asked in server.asked] == [False, True, True, True]


async def test_what_nobody_expected_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(page(), AssertionError("closed"), stream(("ADDED", make_pod())))
    async with watching(server) as watch:
        await until(lambda: watch.pod("hub", "jupyter-ada"))
    assert "source=pods in hub" in caplog.text
    assert "closed" in caplog.text


async def test_what_is_denied_is_asked_for_again() -> None:
    server = Server(Answer(403, {"message": "forbidden"}), page(), stream())
    async with watching(server, required=False, kind=Kind.QUOTAS) as watch:
        await until(lambda: watch.health() == {"resourcequotas in hub": Health.LIVE})
        assert watch.snapshot().quotas_of("hub") == ()


async def test_without_pods_nothing_can_be_promised() -> None:
    server = Server(Answer(403, {"message": "pods is forbidden"}))
    async with watching(server) as watch:
        with pytest.raises(DeniedError, match="pods is forbidden"):
            await watch.loaded()


async def test_one_object_that_cannot_be_read_does_not_end_the_watch() -> None:
    server = Server(page({"metadata": {"name": "odd"}}, make_pod()), stream())
    async with watching(server) as watch:
        await watch.loaded()
        assert watch.pod("hub", "jupyter-ada") is not None


async def test_those_who_follow_a_pod_are_woken_by_it_alone() -> None:
    go = asyncio.Event()
    server = Server(page(), stream(("ADDED", make_pod())))

    async def later(**query: Any) -> Answer:
        if query.get("watch"):
            await go.wait()
        return await server(**query)

    source = Source(kind=Kind.PODS, namespace="hub", call=later)
    watch = ClusterWatch(ClusterState(Weights(by_pool={}, by_resource={})), [source])
    await watch.start()
    async with watch.following("hub", "jupyter-ada") as mine, watch.following("hub", "other") as other:
        go.set()
        async with asyncio.timeout(DEADLINE):
            await mine.wait()
        assert not other.is_set()
    assert not watch._waiters
    await watch.stop()


async def test_a_promise_does_not_run_out_while_nothing_is_heard() -> None:
    lost = aiohttp.ClientConnectionError("reset")
    moment = [NOW]
    source = Source(kind=Kind.PODS, namespace="hub", call=Server(page(), lost), required=True)
    watch = ClusterWatch(ClusterState(Weights(by_pool={}, by_resource={})), [source], clock=lambda: moment[0])
    bookings = Bookings(watch.state, clock=lambda: moment[0], as_of=watch.as_of)
    await watch.start()
    await until(lambda: watch.health() == {"pods in hub": Health.STALE})
    owner = Owner(user="ada")
    bookings.reserve(Holding(key="k", owner=owner, taken=Resources({"servers": 1})), [])
    bookings.failed("k")
    moment[0] += SETTLE * 10
    assert bookings.usage(owner).user["servers"] == 1
    assert watch.as_of() == NOW
    await watch.stop()


async def test_lines_may_be_longer_than_any_buffer_and_end_anywhere() -> None:
    chunks = [b"one\ntw", b"o", b"", b"\n\nthr", b"ee\n", b"rest"]
    answer: Any = Answer()
    answer.iter_any = lambda: _finite(chunks)
    assert [line async for line in lines(answer)] == [b"one", b"two", b"three"]


async def test_what_is_watched() -> None:
    async with ApiClient() as api:
        found = sources(api, ["hub", "nlp", "hub"])
    labels = [source.label for source in found]
    assert len(labels) == len(set(labels)) == 2 + 2 * 5
    assert [source.namespace for source in found if source.required] == ["hub", "nlp"]
    (outside,) = (source for source in found if source.kind is Kind.OUTSIDE)
    assert outside.field_selector.endswith("metadata.namespace!=hub,metadata.namespace!=nlp")
