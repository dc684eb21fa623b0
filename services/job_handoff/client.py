"""The service as a workspace's command speaks to it, with the workspace's own token.

Foreign exceptions end here.

Shell: talks to the service.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import httpx

from hub_ext.errors import RemoteError, WorkspaceError

from .packing import Packed, copy_chunks

URL: Final = "GPU_WORKSPACES_HANDOFF_URL"
TOKEN: Final = "JUPYTERHUB_API_TOKEN"  # noqa: S105 - the name of a variable
TIMEOUT: Final = httpx.Timeout(60.0, connect=10.0)
TRIES: Final = 4
ENDED: Final = frozenset({"succeeded", "failed", "canceled"})
"""Phases of a run that does not change any more."""
MISSING: Final = "source-missing"
"""The service's word for a source that was not sent yet."""
AWAY: Final = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
"""What the hub's proxy answers while the service starts again."""
PAUSE: Final = 1.0
"""Seconds after the first try that nobody answered; twice as long after each further one."""


class HandoffError(RemoteError):
    """The service did not answer as it should."""

    def __init__(self, what: str, *, status: int | None = None) -> None:
        super().__init__(what, system="job-handoff", status=status)


class UnansweredError(HandoffError):
    """The service gave no answer: whether it did what was asked is not known."""


class RefusedError(WorkspaceError):
    """The service said no, and why."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.reason = str(answer.get("reason") or "refused")
        self.message = str(answer.get("message") or "The request was refused.")
        self.help = str(answer.get("help") or "")
        self.field = str(answer.get("field") or "")
        super().__init__(f"{self.message} {self.help}".strip())


class Client:
    """A client for one user. Use it in ``with``."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = httpx.Client(
            base_url=url.rstrip("/") + "/",
            headers={"Authorization": f"token {token}"},
            timeout=TIMEOUT,
            transport=transport,
            trust_env=False,
        )
        self.url = url.rstrip("/") + "/"
        self._sleep = sleep

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Make a client from what a workspace is told.

        Raises
        ------
        HandoffError
            This is no workspace, or the hub has no service for runs.
        """
        url, token = environment.get(URL, ""), environment.get(TOKEN, "")
        if not url or not token:
            missing = URL if not url else TOKEN
            raise HandoffError(f"{missing} is not set: run this in a workspace of a hub with job-handoff")
        return cls(url, token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._client.close()

    def get(self, path: str, **query: str) -> Any:
        """Ask for something."""
        return self._ask("GET", path, params=query).json()

    def text(self, path: str, **query: str) -> str:
        """Ask for a text."""
        return self._ask("GET", path, params=query).text

    def post(self, path: str, body: Mapping[str, Any], **query: str) -> Any:
        """Have something done. Sent again while nobody answers: with a key that does nothing twice."""
        return self._ask("POST", path, params=query, json=dict(body)).json()

    def delete(self, path: str) -> Any:
        """Have something removed."""
        return self._ask("DELETE", path).json()

    def upload(self, packed: Packed) -> None:
        """Send a source, unless it is there."""
        path = f"api/snapshots/{packed.sha256}"
        try:
            self._ask("GET", path)
        except RefusedError as error:
            if error.reason != MISSING:
                raise
            self._ask("PUT", path, packed=packed)

    def download(self, run: str, name: str, target: Path) -> None:
        """Fetch a result; the file appears only when it is whole."""
        part = target.with_name(target.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        path = f"api/runs/{quote(run)}/files/{quote(name)}"
        try:
            with self._client.stream("GET", path) as answer:
                if answer.status_code != HTTPStatus.OK:
                    answer.read()
                    self._checked(answer)
                with part.open("wb") as file:
                    for chunk in answer.iter_bytes():
                        file.write(chunk)
            part.replace(target)
        except httpx.HTTPError as error:
            raise HandoffError(f"{name}: {error!r}") from error
        finally:
            part.unlink(missing_ok=True)

    def _ask(self, method: str, path: str, *, packed: Packed | None = None, **more: Any) -> httpx.Response:
        for again in range(TRIES):
            try:
                return self._checked(self._try(method, path, packed, **more))
            except UnansweredError:
                if again + 1 == TRIES:
                    raise
                self._sleep(PAUSE * 2**again)
        raise AssertionError("the last try answers or raises")

    def _try(self, method: str, path: str, packed: Packed | None, **more: Any) -> httpx.Response:
        if packed is not None:
            packed.file.seek(0)
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(packed.size)}
            more |= {"content": copy_chunks(packed.file), "headers": headers}
        try:
            return self._client.request(method, path, **more)
        except httpx.HTTPError as error:
            raise UnansweredError(f"no answer: {error!r}") from error

    @staticmethod
    def _checked(answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        try:
            said = answer.json()
        except ValueError:
            said = {}
        if isinstance(said, dict) and "message" in said:
            raise RefusedError(said)
        if answer.status_code in AWAY:
            raise UnansweredError(answer.reason_phrase, status=answer.status_code)
        raise HandoffError(answer.reason_phrase, status=answer.status_code)


def names_of(listing: Mapping[str, Any]) -> Iterator[str]:
    """Give the names of the results in an answer."""
    for one in listing["files"]:
        yield str(one["name"])
