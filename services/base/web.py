"""The web application of a service: its own handlers, sign-in, health and metrics.

Shell: speaks HTTP.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from tornado import web

from .handlers import Handler, Page, note
from .loop import Loop
from .service import Context, Service

log = logging.getLogger(__name__)

LARGEST_BODY: Final = 1024 * 1024
"""Bytes of a request."""


class SignInCallback(HubOAuthCallbackHandler):  # type: ignore[misc]
    """Where the hub sends a browser back to."""

    @property
    def hub_auth(self) -> HubOAuth:
        return self.settings["hub_auth"]

    async def prepare(self) -> None:
        """Look up who is signed in already; the base class would block the event loop for it."""
        self._hub_auth_user_cache = await self.hub_auth.get_user(self, sync=False)

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """Keep codes out of the log."""
        if isinstance(value, web.HTTPError):
            note(self.request.path, value)
        else:
            super().log_exception(typ, value, tb)


class Health(web.RequestHandler):
    """Says that the process is alive, to anyone. That a hub is away is no reason to restart."""

    def get(self) -> None:
        loops: Mapping[str, Loop] = self.settings["loops"]
        self.finish({"status": "ok", "loops": {name: loop.state() for name, loop in loops.items()}})


class Metrics(Handler):
    """What is counted, for Prometheus."""

    scopes = frozenset({"read:metrics"})

    async def prepare(self) -> None:
        """Ask who this is, unless the admin wants it open."""
        if self.service.settings.authenticate_metrics:
            await super().prepare()

    def get(self) -> None:
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.finish(generate_latest(self.service.registry))


def application(service: Service[Any], loops: Iterable[Loop], hub_auth: HubOAuth) -> web.Application:
    """Make the web application of a service."""
    prefix = re.escape(service.context.prefix)
    routes: list[Any] = [
        *((prefix + path, handler, arguments) for path, handler, arguments in service.handlers()),
        (prefix + "oauth_callback", SignInCallback),
        (prefix + "health", Health),
        (prefix + "metrics", Metrics),
    ]
    return web.Application(
        routes,
        default_handler_class=NotFound,
        service=service,
        hub_auth=hub_auth,
        loops={loop.name: loop for loop in loops},
        log_function=_log_request,
        cookie_secret=hmac.digest(service.context.token.encode(), b"gpu-workspaces cookies", "sha256"),
    )


class NotFound(Page):
    """Whatever else is asked for; nobody need sign in for it."""

    async def prepare(self) -> None:
        raise web.HTTPError(HTTPStatus.NOT_FOUND)


def sign_in(context: Context) -> HubOAuth:
    """Make what asks the hub who someone is; what is not in `context` comes from the environment."""
    return HubOAuth(
        api_token=context.token,
        api_url=context.api_url,
        base_url=context.prefix,
        hub_prefix=context.hub_prefix,
        oauth_client_id=os.environ.get("JUPYTERHUB_CLIENT_ID") or f"service-{context.name}",
        access_scopes={f"access:services!service={context.name}"},
    )


def _log_request(handler: web.RequestHandler) -> None:
    """Log a request without its query: sign-in puts codes there."""
    request, status = handler.request, handler.get_status()
    level = logging.DEBUG if status < HTTPStatus.BAD_REQUEST else logging.INFO
    log.log(
        level,
        "request: method=%s path=%s status=%s milliseconds=%.0f",
        request.method,
        request.path,
        status,
        1000 * request.request_time(),
    )
