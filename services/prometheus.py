"""Instant queries to Prometheus.

An answer that is not whole is none: warnings of the server are errors here, since nobody may be stopped for
what a broken shard did not say.

Shell: talks to Prometheus.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import Collection, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import httpx

from hub_ext.errors import PrometheusError

TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)
_MEANING: Final = str.maketrans({c: f"\\{c}" for c in r"\.+*?()|[]{}^$"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float | None
    """None for NaN and for infinities: they are not measurements."""
    time: datetime
    """That the query was evaluated for, not when it was measured: ask for ``timestamp(…)`` to know that."""


class FileToken(httpx.Auth):
    """A bearer token in a file that is read for every request: mounted tokens are renewed now and then."""

    def __init__(self, path: Path) -> None:
        """Take a file.

        Raises
        ------
        PrometheusError
            It cannot be read, or is empty.
        """
        self._path = path
        self._read()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign a request; raises `PrometheusError` where there is no token to do it with."""
        request.headers["Authorization"] = f"Bearer {self._read()}"
        yield request

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PrometheusError(
                f"the file with the token cannot be read: {self._path}: {error!r}"
            ) from None
        if not token:
            raise PrometheusError(f"the file with the token is empty: {self._path}")
        return token


class Prometheus:
    """A client of one server. Use it in ``async with``, or call `close`."""

    def __init__(
        self,
        url: str,
        *,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Make a client.

        Parameters
        ----------
        url
            Of the server, with the prefix that it may have: ``https://monitoring.example.com/prometheus``.
        token_file
            Holds a bearer token.
        ca_file
            Certificates to trust in place of the usual ones.
        transport
            Takes the place of the network.
        """
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/",
            auth=FileToken(token_file) if token_file else None,
            timeout=TIMEOUT,
            transport=transport,
            trust_env=False,
            verify=_trust(ca_file),
        )
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="answers")
        """One: an answer that is long takes turns with the event loop, and several would take all of them."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
        self._reader.shutdown(wait=False)

    async def query(self, expression: str, *, at: datetime | None = None) -> tuple[Sample, ...]:
        """Evaluate an expression that gives a vector or a number; values of users go through `quoted`.

        Raises
        ------
        PrometheusError
            No answer, a refused one, or one with warnings.
        """
        fields = {"query": expression} | ({"time": str(at.timestamp())} if at else {})
        try:
            response = await self._client.post("api/v1/query", data=fields)
        except httpx.HTTPError as error:
            raise PrometheusError(f"no answer: {error!r}") from error
        return await asyncio.get_running_loop().run_in_executor(self._reader, _read, response)


def quoted(text: str) -> str:
    """Write a text as a string of PromQL, for ``label=…``."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", r"\x7f")


def quoted_any(texts: Collection[str]) -> str:
    """Write texts as a string of PromQL that matches any of them and nothing else, for ``label=~…``.

    There has to be one: an empty pattern matches whatever has no such label.
    """
    if not texts or "" in texts:
        raise ValueError("nothing to match")
    return quoted("|".join(text.translate(_MEANING) for text in texts))


def _trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise PrometheusError(f"the certificates cannot be read: {ca_file}: {error!r}") from None


def _read(response: httpx.Response) -> tuple[Sample, ...]:
    return _samples(_data(response))


def _data(response: httpx.Response) -> Mapping[str, Any]:
    """Give the data of an answer that is whole."""
    try:
        body = response.json()
        status, warnings = body["status"], body.get("warnings")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PrometheusError(
            f"the answer is none of Prometheus: {response.text[:200]}", status=response.status_code
        ) from error
    if status != "success":
        raise PrometheusError(str(body.get("error", ""))[:300], status=response.status_code)
    if warnings:
        raise PrometheusError(f"the answer is not whole: {'; '.join(map(str, warnings))[:300]}")
    data = body.get("data")
    return data if isinstance(data, dict) else {}


def _samples(data: Mapping[str, Any]) -> tuple[Sample, ...]:
    kind, result = data.get("resultType"), data.get("result")
    try:
        if kind == "scalar":
            return (_sample({}, *result),)  # type: ignore[misc]
        if kind == "vector" and isinstance(result, list):
            return tuple(_sample(dict(one["metric"]), *one["value"]) for one in result)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise PrometheusError(f"a sample that cannot be read: {error!r}") from error
    raise PrometheusError(f"the expression gives a {kind}, not a vector or a number")


def _sample(labels: Mapping[str, str], time: float, value: str) -> Sample:
    number = float(value)
    return Sample(
        labels=labels,
        value=number if math.isfinite(number) else None,
        time=datetime.fromtimestamp(float(time), UTC),
    )
