"""The REST interface against its own description: whatever is sent, it answers as it says."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks as known
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from services.base.web import application
from services.job_handoff.openapi import describe
from services.job_handoff.settings import HandoffSettings
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.unit.handoff.conftest import CATALOG, PREFIX, World, door

schema = schemathesis.openapi.from_dict(describe(PREFIX))
EXAMPLES = int(os.environ.get("HANDOFF_EXAMPLES", "5"))
"""Requests to each operation; set it to some hundred to search."""
CHECKS = [
    known.not_a_server_error,
    schemathesis.specs.openapi.checks.status_code_conformance,
    schemathesis.specs.openapi.checks.content_type_conformance,
    schemathesis.specs.openapi.checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service with its own event loop: the fuzzer waits for each answer."""
    folder = tmp_path_factory.mktemp("fuzz")
    told = HandoffSettings.model_validate(
        {
            "catalog": str(CATALOG),
            "namespace": "runs",
            "store": {"url": f"file://{folder}/store"},
            "runner": {"url": "http://proxy.hub/services/job-handoff/"},
            "bounds": {"runsPerUser": 5},
        }
    )
    ports: list[int] = []
    up, down = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        world = World(told)
        await world.upload()
        server = HTTPServer(application(world.service, (), door()), max_body_size=1024 * 1024)
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        ports.append(sockets[0].getsockname()[1])
        loops.append(asyncio.get_running_loop())
        up.set()
        await down.wait()
        server.stop()
        await server.close_all_connections()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert up.wait(PATIENCE_SECONDS)
    yield f"http://127.0.0.1:{ports[0]}{PREFIX.rstrip('/')}"
    loops[0].call_soon_threadsafe(down.set)
    thread.join()


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case: Any, base: str) -> None:
    case.call_and_validate(
        base_url=base, headers={"Authorization": "token ada"}, checks=CHECKS, timeout=PATIENCE_SECONDS
    )
