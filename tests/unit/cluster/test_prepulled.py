"""The prepuller's word on the spawn page: what it says, and what is left when it says nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from hub_ext import prepuller_link
from hub_ext.cluster.nodes import read_node
from hub_ext.cluster.prepulled import SILENT, Prepulled, read_prepulled
from hub_ext.cluster.warmth import Warmth
from hub_ext.errors import BadValueError
from hub_ext.names import parse_image
from hub_ext.prepuller_link import PrepullerLink
from tests.devcluster.waiting import until_met

IMAGE = "registry.example.com/ai/torch@sha256:" + "a" * 64
NODES = [read_node({"metadata": {"name": name}}) for name in ("n1", "n2", "n3")]


def told(**more: Any) -> dict[str, Any]:
    return {
        "image": IMAGE,
        "pool": "gpu",
        "warmNodes": ["n1", "elsewhere"],
        "coldNodes": ["n2"],
        "usualSeconds": 90,
        **more,
    }


def test_nodes_with_room_are_counted_by_the_prepullers_word() -> None:
    found = read_prepulled({"images": [told()]})
    assert found.warmth(parse_image(IMAGE), "gpu", NODES) == Warmth(warm=1, cold=1, unknown=1)
    assert found.usual(parse_image(IMAGE), "gpu") == timedelta(seconds=90)


@pytest.mark.parametrize(("image", "pool"), [(IMAGE, "cpu"), (IMAGE.replace("torch", "flow"), "gpu")])
def test_of_what_it_does_not_say_nothing_is_known(image: str, pool: str) -> None:
    found = read_prepulled({"images": [told()]})
    assert found.warmth(parse_image(image), pool, NODES) == Warmth(unknown=3)
    assert SILENT.warmth(parse_image(IMAGE), "gpu", NODES).certain is None


def test_of_two_credentials_the_colder_counts() -> None:
    other = told(warmNodes=["n1", "n2"], coldNodes=["n3"], usualSeconds=None)
    found = read_prepulled({"images": [told(warmNodes=["n2", "n3"], coldNodes=["n1"]), other]})
    assert found.warmth(parse_image(IMAGE), "gpu", NODES) == Warmth(warm=1, cold=2)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"images": [{}]},
        {"images": [told(warmNodes=None)]},
        {"images": [told(usualSeconds=1e300)]},
        {"images": [told(usualSeconds=float("nan"))]},
    ],
    ids=repr,
)
def test_other_answers_are_refused(answer: Any) -> None:
    with pytest.raises(BadValueError):
        read_prepulled(answer)


class _Handler(RequestHandler):
    def initialize(self, seen: list[tuple[int, str]], answers: list[Any]) -> None:
        self.seen, self.answers = seen, answers

    def get(self) -> None:
        assert self.request.headers["Authorization"] == "token its-own"
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, int):
            self.set_status(answer)
            self.finish()
        else:
            self.finish(answer if isinstance(answer, bytes) else json.dumps(answer))

    def on_finish(self) -> None:
        self.seen.append((self.get_status(), self.request.path))


@asynccontextmanager
async def linked(*answers: Any) -> AsyncIterator[tuple[list[Prepulled], list[tuple[int, str]]]]:
    """A link to a server that gives these answers, the last one again and again."""
    seen: list[tuple[int, str]] = []
    handler = (r"/services/prepuller/api/warm", _Handler, {"seen": seen, "answers": list(answers)})
    server, sockets = HTTPServer(Application([handler])), bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/services/prepuller/"
    heard: list[Prepulled] = []
    task = asyncio.create_task(PrepullerLink(url, "its-own", told=heard.append, every=0.01).run())
    try:
        yield heard, seen
    finally:
        task.cancel()
        server.stop()
        await server.close_all_connections()


async def until(condition: Any) -> None:
    await until_met(condition, what="the link to tell it")


async def test_what_has_not_changed_is_not_sent_again() -> None:
    async with linked({"images": [told()]}) as (heard, seen):
        await until(lambda: len(seen) > 3)
        assert [status for status, _ in seen[:4]] == [200, 304, 304, 304]
        assert heard == [SILENT, read_prepulled({"images": [told()]})]


async def test_an_answer_outlives_a_short_silence_and_no_longer_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked({"images": [told()]}, 503) as (heard, seen):
        await until(lambda: len(seen) > 3)
        assert heard[-1] != SILENT
        monkeypatch.setattr(prepuller_link, "PATIENCE", 0.0)
        await until(lambda: heard[-1] == SILENT)
    assert caplog.text.count("does not answer") == 1
    assert "its-own" not in caplog.text


@pytest.mark.parametrize("answer", [403, b"<html>", {"images": [{}]}], ids=["refused", "page", "other"])
async def test_a_prepuller_that_answers_otherwise_is_silent(answer: Any) -> None:
    async with linked(answer) as (heard, seen):
        await until(lambda: len(seen) > 2)
        assert set(map(id, heard)) == {id(SILENT)}


async def test_a_prepuller_that_comes_back_is_heard() -> None:
    async with linked(503, 503, {"images": [told()]}) as (heard, _):
        await until(lambda: heard and heard[-1] != SILENT)
