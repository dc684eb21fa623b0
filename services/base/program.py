"""The process of a service: begins, works, ends in order.

Shell: reads arguments, listens, handles signals.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from tornado.httpserver import HTTPServer

from hub_ext.errors import WorkspaceError

from ..hub import Hub
from .loop import Loop, LoopMetrics
from .service import Context, Service
from .settings import read_settings
from .web import LARGEST_BODY, application, sign_in

log = logging.getLogger(__name__)

GRACE: Final = 10.0
"""Seconds that passes have to end after SIGTERM; Kubernetes kills after 30."""
REFUSED: Final = 2
"""Exit status of a service that cannot begin."""


def main(kind: type[Service[Any]], arguments: Sequence[str] | None = None) -> int:
    """Run a service until SIGTERM or SIGINT; returns its exit status."""
    parser = argparse.ArgumentParser(description=kind.__doc__, allow_abbrev=False)
    parser.add_argument("--config", type=Path, help="YAML file with the service's settings")
    options = parser.parse_args(arguments)
    try:
        settings = read_settings(kind.settings_type, options.config)
        context = Context.from_environment(os.environ)
        _log_to_stderr(settings.log_level)
        asyncio.run(_work(kind, settings, context))
    except (WorkspaceError, OSError) as error:
        print(f"{kind.__name__} does not start: {error}", file=sys.stderr)  # noqa: T201
        return REFUSED
    return 0


def _log_to_stderr(level: str) -> None:
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level.upper(), format=form, stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for every request, with its query


async def _work(kind: type[Service[Any]], settings: Any, context: Context) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(Hub(context.api_url, context.token))
        service = kind(settings, context, hub, registry)
        await service.open(stack)
        loops = service.loops()
        server = HTTPServer(application(service, loops, sign_in(context)), max_body_size=LARGEST_BODY)
        server.add_socket(_listen(context))
        log.info("started: service=%s address=%s port=%d", context.name, context.address, context.port)
        try:
            await _until(stop, loops, LoopMetrics(registry))
        finally:
            server.stop()
            await server.close_all_connections()
    log.info("ended: service=%s", context.name)


def _listen(context: Context) -> socket.socket:
    """Take the port that the hub has given; raises `WorkspaceError`."""
    family = socket.AF_INET6 if ":" in context.address else socket.AF_INET
    try:
        listening = socket.create_server((context.address, context.port), family=family)
    except OSError as error:
        raise WorkspaceError(
            f"it cannot listen: {error.strerror}; give the service another port in its url "
            "(JUPYTERHUB_SERVICE_URL)"
        ) from error
    listening.setblocking(False)
    return listening


async def _until(stop: asyncio.Event, loops: Sequence[Loop], metrics: LoopMetrics) -> None:
    """Run all loops until `stop`; if one of them ends by itself, so does the service, with its error."""
    stopped = asyncio.create_task(stop.wait())
    tasks = [asyncio.create_task(loop.run(metrics), name=loop.name) for loop in loops]
    try:
        done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        for loop in loops:
            loop.end()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE)
    finally:
        for task in (stopped, *tasks):
            task.cancel()
        await asyncio.gather(stopped, *tasks, return_exceptions=True)
