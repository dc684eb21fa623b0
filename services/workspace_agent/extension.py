"""Joins the agent to a Jupyter server.

Shell: reads the environment, changes the server's settings.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from jupyter_server.serverapp import ServerApp

from hub_ext.protocol import URL_ENV

from .agent import Agent
from .culler import Culler
from .handlers import routes, settings
from .inputs import Inputs, noting
from .jobs import URL_ENV as HANDOFF_ENV
from .jupyter import Jupyter
from .readers import Sampler
from .view import EVENT, SCHEMA

CONNECTION = "kernel_websocket_connection_class"
"""The server's setting: what joins a browser to a kernel."""
WATCHED = ("handle_incoming_message", "handle_outgoing_message")
"""Its methods that see all messages."""


def load(server: ServerApp) -> None:
    """Start the agent in a server. Whatever goes wrong is logged, and the server runs on without it."""
    try:
        _load(server, os.environ)
    except Exception:
        # The server is the user's, and works without the agent.
        server.log.exception("workspace agent: not started")


def _load(server: ServerApp, environment: Mapping[str, str]) -> None:
    _log_as(server.log)
    app = server.web_app
    inputs = _note_inputs(app.settings)
    events = server.event_logger
    if events is None:
        raise RuntimeError("the server has no event bus")
    events.register_event_schema(SCHEMA)
    agent = Agent(
        Sampler(Jupyter(server, inputs)),
        _culler(server, environment),
        server=environment.get("JUPYTERHUB_SERVER_NAME", ""),
        emit=lambda view: events.emit(schema_id=EVENT, data={"view": view}),
        handoff=bool(environment.get(HANDOFF_ENV)),
    )
    app.settings.update(settings(agent))
    app.add_handlers(".*$", routes(server.base_url))  # type: ignore[no-untyped-call]
    server.io_loop.add_callback(agent.start)


def _note_inputs(settings: dict[str, Any]) -> Inputs | None:
    """Have questions to the user noted; None where the server joins browsers and kernels in another way."""
    connection = settings.get(CONNECTION)
    if connection is None or not all(hasattr(connection, method) for method in WATCHED):
        return None
    inputs = Inputs()
    settings[CONNECTION] = noting(connection, inputs)
    return inputs


def _log_as(server: logging.Logger | logging.LoggerAdapter[Any]) -> None:
    """Let the agent's modules write where the server does."""
    own = logging.getLogger(__package__)
    target = server.logger if isinstance(server, logging.LoggerAdapter) else server
    own.handlers, own.propagate = list(target.handlers), not target.handlers
    own.setLevel(target.getEffectiveLevel())


def _culler(server: ServerApp, environment: Mapping[str, str]) -> Culler | None:
    url, token = environment.get(URL_ENV), environment.get("JUPYTERHUB_API_TOKEN")
    if not url or not token:
        server.log.info("workspace agent: reports to nobody, for %s is not set", URL_ENV)
        return None
    try:
        return Culler(url, token)
    except ValueError as error:
        server.log.warning("workspace agent: reports to nobody: %s: %s", URL_ENV, error)
        return None
