"""The service, as a run's own pods may use it.

Shell: talks to the service.
"""

from __future__ import annotations

import http.client
import json
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

from .common import DISK, PATIENCE, RunError

CHUNK = 1024 * 1024
T = TypeVar("T")


class Service:
    """The service, as a run's own pods may use it."""

    def __init__(self, url: str, token: str, run: str) -> None:
        self._root = f"{url}runner/{urllib.parse.quote(run)}/"
        self._token = token

    def get(self, path: str, target: Path, patience: float = PATIENCE) -> None:
        """Fetch a file; raises `RunError` if there is none."""

        def take(response: http.client.HTTPResponse) -> None:
            with target.open("wb") as file:
                shutil.copyfileobj(response, file, CHUNK)
                length = response.headers.get("Content-Length")
                # A body that is read piece by piece just stops where the connection broke off.
                if length is not None and file.tell() != int(length):
                    raise ConnectionError(f"{path}: {file.tell()} of {length} bytes came")

        self._persistently("GET", path, None, patience, take)

    def ask(self, path: str, patience: float = 0.0) -> Any:
        """Ask for a small answer."""
        return self._persistently("GET", path, None, patience, json.load)

    def put(self, path: str, source: Path, patience: float = 0.0) -> None:
        """Send a file as it is at this moment, under a name below the run's own folder."""
        size = source.stat().st_size
        place = self.ask(f"place?name={urllib.parse.quote(path)}&size={size}", patience)
        self._persistently(
            "PUT", place["url"], source, patience, lambda _answer: None, signed=place["signed"]
        )

    def _persistently(
        self,
        method: str,
        path: str,
        body: Path | None,
        patience: float,
        take: Callable[[http.client.HTTPResponse], T],
        *,
        signed: bool = False,
    ) -> T:
        """Send a request again until all of its answer has come; what is refused is not sent again."""
        deadline, delay = time.monotonic() + patience, 1.0
        while True:
            try:
                with self._send(method, path, body, signed=signed) as response:
                    return take(response)
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code != 429:
                    raise RunError(
                        "source-lost", f"{method} {path.partition('?')[0]}: {error.code} {_told(error)}"
                    ) from error
                problem: OSError = error
            except OSError as error:  # no answer at all, or half of one; `URLError` is one of these
                if error.errno in DISK:
                    raise
                problem = error
            except http.client.HTTPException as error:
                problem = ConnectionError(f"{method} {path.partition('?')[0]}: {error!r}")
            if time.monotonic() + delay > deadline:
                raise problem
            time.sleep(delay)
            delay = min(delay * 2, 15.0)

    def _send(self, method: str, path: str, body: Path | None, *, signed: bool) -> http.client.HTTPResponse:
        url = path if signed else urllib.parse.urljoin(self._root, path)
        headers = {} if signed else {"X-Run-Token": self._token}
        if body is None:
            return self._open(urllib.request.Request(url, headers=headers, method=method))  # noqa: S310
        size = body.stat().st_size
        headers.update({"Content-Length": str(size), "Content-Type": "application/octet-stream"})
        with body.open("rb") as file:
            data: Any = _Exactly(file, size)
            return self._open(urllib.request.Request(url, data=data, headers=headers, method=method))  # noqa: S310

    def _open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Send it, not by way of a proxy that the image may name."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        answer: http.client.HTTPResponse = opener.open(request, timeout=60)
        return answer


def _told(error: urllib.error.HTTPError) -> str:
    """Give the sentence in an answer, or the answer."""
    text = error.read(2000).decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:500]


class _Exactly:
    """A file that is read up to the size it had: it may grow meanwhile."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(chunk)
        return chunk
