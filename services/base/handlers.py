"""Pages and API of a service, signed in by the hub.

Browsers sign in by OAuth and then carry a cookie; a cookie counts only for requests from the service's own
pages (`_xsrf`, as everywhere in JupyterHub). Programs send ``Authorization: token …``.

Shell: speaks HTTP.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from http import HTTPStatus
from typing import Any, ClassVar, Final, TypeVar

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape
from jupyterhub.services.auth import HubOAuth, HubOAuthenticated
from markupsafe import Markup
from pydantic import BaseModel, ValidationError
from tornado import web

from hub_ext.errors import RemoteError

from .service import Service

log = logging.getLogger(__name__)
M = TypeVar("M", bound=BaseModel)

ANYONE: Final[frozenset[str]] = frozenset()
"""For `Handler.scopes`: whoever the hub knows, such as a user's server with its own token."""


class Handler(HubOAuthenticated, web.RequestHandler):  # type: ignore[misc]
    """Base of all handlers: knows who asks before `get` or `post` runs."""

    scopes: ClassVar[frozenset[str] | None] = None
    """Any of these lets in; None for those that the hub gives for the service: `access:services`."""
    model: Mapping[str, Any]
    """Who asks, in the hub's words: `name`, `kind` (``user`` or ``service``), `scopes`."""

    @property
    def service(self) -> Service[Any]:
        found: Service[Any] = self.settings["service"]
        return found

    @property
    def hub_auth(self) -> HubOAuth:
        return self.settings["hub_auth"]

    @property
    def hub_scopes(self) -> frozenset[str]:
        return self.hub_auth.access_scopes if self.scopes is None else self.scopes

    async def prepare(self) -> None:
        """Ask the hub who this is; the base class would block the event loop for it."""
        self._hub_auth_user_cache = None  # what `current_user` of the base class would look up
        model = await self.hub_auth.get_user(self, sync=False)
        if not model:
            self.not_signed_in()
            return
        model.setdefault("kind", "user")
        self._hub_auth_user_cache = model
        if self.scopes != ANYONE and not self.hub_auth.check_scopes(self.hub_scopes, model):
            raise web.HTTPError(HTTPStatus.FORBIDDEN, "%s may not use this service", model["name"])
        self.model = model

    def not_signed_in(self) -> None:
        """Answer someone whom the hub does not know, or whose cookie does not count here."""
        raise web.HTTPError(HTTPStatus.FORBIDDEN, "not signed in, or the page is out of date")

    @property
    def user(self) -> str:
        """Name of the user who asks; a service is none."""
        if self.model["kind"] != "user":
            raise web.HTTPError(HTTPStatus.FORBIDDEN, "%s is no user", self.model["name"])
        name: str = self.model["name"]
        return name

    def read(self, kind: type[M]) -> M:
        """Read the body, which has to be JSON of this shape; raises `web.HTTPError` with what is wrong."""
        sent = self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if sent != "application/json":
            raise web.HTTPError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
        try:
            return kind.model_validate_json(self.request.body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "%s: %s", place or "body", first["msg"]) from None

    def set_default_headers(self) -> None:
        """Let no other site frame, sniff or keep what is answered."""
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Tell apart what others did not answer from what is wrong here."""
        _, error, _ = kwargs.get("exc_info") or (None, None, None)
        if isinstance(error, RemoteError):
            status_code = HTTPStatus.SERVICE_UNAVAILABLE
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer an error as JSON, without what only the log may know."""
        _, error, _ = kwargs.get("exc_info") or (None, None, None)
        reason = {"reason": error.word} if isinstance(error, Refusal) else {}
        self.finish({"status": status_code, **reason, "message": told(status_code, error)})

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """Log what is wrong with the service, not what is wrong with a request."""
        if isinstance(value, RemoteError | web.HTTPError):
            note(self.request.path, value)
        else:
            super().log_exception(typ, value, tb)


def note(path: str, error: RemoteError | web.HTTPError) -> None:
    """Log in one line what was not answered; tornado's own line has the query in it, and so codes."""
    level = logging.WARNING if isinstance(error, RemoteError) else logging.INFO
    log.log(level, "request not answered: path=%s error=%s", path, error)


class Api(Handler):
    """Base of what programs and scripts of pages call; answers and errors are JSON."""


class Page(Handler):
    """Base of what people look at."""

    def not_signed_in(self) -> None:
        """Send a visitor to the hub and back; what they sent in a form is not sent again."""
        if self.request.method not in {"GET", "HEAD"}:
            super().not_signed_in()
        else:
            self.redirect(self.get_login_url())

    def show(self, template: str, **values: Any) -> None:
        """Answer a template of the service's package; every value is escaped.

        Templates extend ``service.html``. They have `xsrf` for their forms and scripts, `nonce` for their own
        `<style>` and `<script>`, `prefix`, `hub_prefix`, `title`, and `user`: None on a page of errors.
        """
        service, nonce = self.service, secrets.token_urlsafe(16)
        known = getattr(self, "model", None)
        self.set_header(
            "Content-Security-Policy",
            f"default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'nonce-{nonce}'; "
            f"script-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        )
        page = _templates(service.package).get_template(template)
        text = page.render(
            **values,
            title=service.title,
            prefix=service.context.prefix,
            hub_prefix=service.context.hub_prefix,
            nonce=nonce,
            user=known["name"] if known else None,
            xsrf=self.xsrf_token.decode() if known else "",
        )
        self.finish(text)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Show an error as a page."""
        _, error, _ = kwargs.get("exc_info") or (None, None, None)
        self.show("error.html", status=status_code, message=told(status_code, error))


class Refusal(web.HTTPError):
    """What is asked for is not done: one sentence for the one who asks, and the word for its reason."""

    def __init__(self, word: StrEnum, message: str, status: int = HTTPStatus.CONFLICT) -> None:
        super().__init__(status, "%s", message)
        self.word = word


def told(status: int, error: BaseException | None) -> str:
    """Say what went wrong to the one who asked."""
    if isinstance(error, web.HTTPError) and error.log_message and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return error.log_message % error.args if error.args else error.log_message
    if isinstance(error, RemoteError):
        return f"{error.system} does not answer as it should. Try again in a minute."
    phrase = {s.value: s.phrase for s in HTTPStatus}.get(status, "Unknown")
    return (
        f"{phrase}." if status < HTTPStatus.INTERNAL_SERVER_ERROR else "Something is wrong with this service."
    )


@cache
def _templates(package: str) -> Environment:
    loaders = [PackageLoader(name, ".") for name in (package, "services.base") if name]
    environment = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # A file of this package, not a value: `</style>` does not occur in it.
    environment.globals["css"] = Markup(loaders[-1].get_source(environment, "service.css")[0])  # noqa: S704
    return environment
