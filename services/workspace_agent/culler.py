"""The idle-culler, as the agent talks to it: with the server's own hub token.

Foreign exceptions end here. Shell: talks HTTP.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import ValidationError
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse

from hub_ext.protocol import (
    MAX_BODY,
    PATH_KEEP,
    PATH_REPORT,
    PATH_SAVED,
    PATH_STOP,
    Answer,
    Keep,
    Line,
    Message,
    Report,
    Saved,
    Stop,
)

TIMEOUT_SECONDS = 20
_PATHS = {Report: PATH_REPORT, Keep: PATH_KEEP, Stop: PATH_STOP, Saved: PATH_SAVED}


class CullerError(Exception):
    """The culler did not answer as agreed.

    Parameters
    ----------
    problem
        What happened, as a sentence for logs and the user; names no secret.
    status
        Of HTTP, where there was an answer.
    """

    def __init__(self, problem: str, status: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.status = problem, status


class Refusal(Message):
    """Why the culler does not do what is wished."""

    message: Line


class Culler:
    """One idle-culler service.

    Parameters
    ----------
    url
        Its prefix, such as ``http://hub:10101/services/idle-culler``.
    token
        The server's ``JUPYTERHUB_API_TOKEN``.

    Raises `ValueError` when `url` is none.
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL")
        self._url, self._token = url.rstrip("/"), token
        # Its own: the server's shared client may wait for slow downloads of the user's.
        self._client = AsyncHTTPClient(force_instance=True)

    async def send(self, message: Report | Keep | Stop | Saved) -> Answer:
        """Send one message. Raises `CullerError`."""
        request = HTTPRequest(
            f"{self._url}/{_PATHS[type(message)]}",
            method="POST",
            headers={"Authorization": f"token {self._token}", "Content-Type": "application/json"},
            body=_body(message),
            connect_timeout=TIMEOUT_SECONDS,
            request_timeout=TIMEOUT_SECONDS,
            follow_redirects=False,
        )
        try:
            response = await self._client.fetch(request, raise_error=False)
        except (HTTPClientError, OSError) as error:
            raise CullerError(f"The idle-culler does not answer: {error}") from error
        return _answer(response)


def _body(message: Message) -> str:
    body = message.model_dump_json(exclude_defaults=True)
    if len(body.encode()) > MAX_BODY:
        raise CullerError(f"A message of {len(body)} characters is more than the idle-culler takes")
    return body


def _answer(response: HTTPResponse) -> Answer:
    if response.code == 599:  # tornado's own: it got no answer
        raise CullerError(f"The idle-culler does not answer: {response.error}")
    if response.code in {401, 403}:
        raise CullerError(
            f"The idle-culler refuses this server's token (HTTP {response.code})", response.code
        )
    if response.code != 200:
        problem = _refusal(response) or f"The idle-culler answers HTTP {response.code}"
        raise CullerError(problem, response.code)
    try:
        return Answer.model_validate_json(response.body)
    except ValidationError as error:
        raise CullerError(f"The idle-culler's answer cannot be read: {error.error_count()} faults") from error


def _refusal(response: HTTPResponse) -> str:
    """The culler's own sentence where it refuses a wish; empty where the answer is not the culler's."""
    if response.code not in {404, 409}:
        return ""
    try:
        return Refusal.model_validate_json(response.body).message
    except ValidationError:
        return ""
