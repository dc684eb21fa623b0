"""The few calls to the API server that bring a cluster up, without the cost of a kubectl process each.

Shell: talks HTTPS with a client certificate.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.devcluster.errors import ApiError, NotReadyError
from tests.devcluster.pki import Pair
from tests.devcluster.waiting import PATIENCE_SECONDS, Check, until

WATCH_SECONDS = 2
"""A watch is renewed so often: between two of them the programs are looked at."""


class Api:
    """An administrator's connection."""

    def __init__(self, server: str, *, ca: Path, pair: Pair) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        context.load_cert_chain(pair.certificate, pair.key)
        # The developer's proxy settings are for the world outside.
        self._client = httpx.Client(
            base_url=server, verify=context, timeout=PATIENCE_SECONDS, trust_env=False
        )

    def close(self) -> None:
        """Close the connections that are kept open for the next call."""
        self._client.close()

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return the answer's object; raises `ApiError`, status 0 when nobody answers."""
        try:
            answer = self._client.request(method, path, json=body)
        except httpx.TransportError as error:
            raise ApiError(method, path, 0, repr(error)) from error
        if answer.is_error:
            raise ApiError(method, path, answer.status_code, answer.text)
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text

    def watch(self, path: str, *, seconds: int = WATCH_SECONDS) -> Iterator[dict[str, Any]]:
        """Yield the objects of a collection, first as they are, then at each change, for some seconds."""
        query = {"watch": "1", "timeoutSeconds": str(seconds)}
        try:
            with self._client.stream("GET", path, params=query) as answer:
                if answer.is_error:
                    raise ApiError("WATCH", path, answer.status_code, answer.read().decode())
                for line in answer.iter_lines():
                    event = json.loads(line)
                    if event["type"] in {"ADDED", "MODIFIED"}:
                        yield event["object"]
        except httpx.TransportError as error:
            raise ApiError("WATCH", path, 0, repr(error)) from error

    def until_all(
        self,
        path: str,
        names: set[str],
        done: Callable[[dict[str, Any]], bool],
        *,
        what: str,
        timeout: float,
        check: Check,
    ) -> None:
        """Watch a collection until each of the named objects was seen `done`; raises `NotReadyError`."""
        waiting = set(names)
        deadline = time.monotonic() + timeout
        while waiting:
            check()
            if time.monotonic() > deadline:
                raise NotReadyError(what, timeout, f"still waiting for {', '.join(sorted(waiting)[:5])}")
            for item in self.watch(path):
                if item["metadata"]["name"] in waiting and done(item):
                    waiting.discard(item["metadata"]["name"])
                if not waiting:
                    return

    def until_answering(self, path: str, *, what: str, timeout: float, check: Check) -> None:
        """Ask for a path until the answer is no error; raises `NotReadyError`."""

        def answers() -> str | None:
            try:
                self.request("GET", path)
            except ApiError as error:
                return str(error)
            return None

        until(answers, what=what, timeout=timeout, check=check)


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether a Node says it is Ready."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
