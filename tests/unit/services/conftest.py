"""An API server on a port of this machine, which keeps its objects in a `FakeKube`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from kubernetes_asyncio.client import ApiClient, Configuration
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from services.kube import Kube, KubeError
from tests.fakes.kube import FakeKube
from tests.fakes.kube_parts import Place


class _Handler(RequestHandler):
    """Speaks HTTP for the fake; what is sent to it in `seen` is what the client sent."""

    def initialize(self, fake, seen):
        self.fake, self.seen = fake, seen

    async def prepare(self):
        query = {key: self.get_query_argument(key) for key in self.request.query_arguments}
        self.seen.append((self.request.method, self.request.path, query, dict(self.request.headers)))
        method = {"GET": self.read, "POST": self.make, "DELETE": self.remove}
        try:
            await method.get(self.request.method, self.change)(self.request.path, query)
        except KubeError as error:
            self.set_status(error.status or 500)
            self.finish(
                {"kind": "Status", "code": error.status, "reason": error.reason, "message": error.what}
            )

    def sent(self):
        return json.loads(self.request.body)

    async def read(self, path, query):
        if query.pop("watch", ""):
            query.pop("allowWatchBookmarks")
            async for change, item in self.fake.watch(path, query["resourceVersion"], **query):
                self.write(json.dumps({"type": change, "object": item}) + "\n")
                await self.flush()
            return
        if Place.of(path).name:
            self.finish(await self.fake.get(path))
            return
        found = (await self.fake.list(path, **query)).items
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        more = {"continue": str(start + limit)} if start + limit < len(found) else {}
        metadata = {"resourceVersion": str(len(self.fake.calls)), **more}
        self.finish({"kind": "List", "metadata": metadata, "items": found[start : start + limit]})

    async def make(self, path, query):
        self.set_status(201)
        self.finish(await self.fake.create(path, self.sent(), dry_run="dryRun" in query))

    async def change(self, path, query):
        assert self.request.headers["Content-Type"] == "application/merge-patch+json"
        self.finish(await self.fake.patch(path, self.sent()))

    async def remove(self, path, query):
        meant = self.sent().get("preconditions", {})
        if not await self.fake.delete(path, uid=meant.get("uid")):
            await self.fake.get(path)
        self.finish({"kind": "Status", "status": "Success"})


@pytest.fixture
def fake_kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def seen() -> list:
    return []


@pytest.fixture
async def kube(fake_kube: FakeKube, seen: list) -> AsyncIterator[Kube]:
    """The real client of an API server that is not."""
    server = HTTPServer(Application([(r"/.*", _Handler, {"fake": fake_kube, "seen": seen})]))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    settings = Configuration(host=f"http://127.0.0.1:{sockets[0].getsockname()[1]}")
    settings.api_key = {"BearerToken": "Bearer of-the-service"}
    async with Kube(ApiClient(configuration=settings)) as kube:
        yield kube
    server.stop()
    await server.close_all_connections()
