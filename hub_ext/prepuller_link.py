"""Asks the prepuller now and then what is warm.

Shell: speaks HTTP, waits.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from .cluster.prepulled import SILENT, Prepulled, read_prepulled

log = logging.getLogger(__name__)

EVERY: Final = 10.0
"""Seconds between two questions; what has not changed is not sent again."""
PATIENCE: Final = 120.0
"""Seconds without an answer after which nothing is known any more."""
_ANSWER: Final = 10.0


class PrepullerLink:
    """Keeps what the prepuller said last."""

    def __init__(
        self, url: str, token: str, *, told: Callable[[Prepulled], None], every: float = EVERY
    ) -> None:
        """Make a link.

        Parameters
        ----------
        url
            Of the service, with a slash at its end.
        token
            Of whoever may use the service.
        told
            Is called with what is known, and with `SILENT` when that is too old.
        """
        self._url, self._token = url, token
        self._told = told
        self._every = every
        self._version = ""
        self._heard: float | None = None
        self._problem = ""

    async def run(self) -> None:
        """Ask again and again, until cancelled; a prepuller that does not answer ends nothing."""
        self._told(SILENT)
        while True:
            try:
                await self._ask()
            except (HTTPClientError, OSError, ValueError, TimeoutError) as error:
                self._silent(error)
            await asyncio.sleep(self._every)

    async def _ask(self) -> None:
        headers = {"Authorization": f"token {self._token}"}
        if self._version:
            headers["If-None-Match"] = self._version
        request = HTTPRequest(
            f"{self._url}api/warm", headers=headers, connect_timeout=_ANSWER, request_timeout=_ANSWER
        )
        answer = await AsyncHTTPClient().fetch(request, raise_error=False)
        if answer.code == HTTPStatus.OK:
            self._told(read_prepulled(json.loads(answer.body)))
            self._version = answer.headers.get("Etag", "")
        elif answer.code != HTTPStatus.NOT_MODIFIED:
            answer.rethrow()
        self._heard = asyncio.get_running_loop().time()
        if self._problem:
            log.info("prepuller answers again")
        self._problem = ""

    def _silent(self, error: Exception) -> None:
        """Log what is new, and forget what is too old."""
        if str(error) != self._problem:
            log.warning("prepuller does not answer: url=%s error=%s", self._url, error)
        self._problem = str(error)
        now = asyncio.get_running_loop().time()
        if self._heard is None or now - self._heard > PATIENCE:
            self._version = ""
            self._told(SILENT)
