"""A Prometheus that answers what tests put into it, expression by expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import httpx


class FakePrometheus:
    """Knows some expressions; any other gives an empty vector, as one over series that nobody has."""

    URL = "http://prometheus.example"

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.warnings: list[str] = []
        self.down: Exception | int | None = None
        """Not there at all, or only able to answer with a status."""
        self.clock: Callable[[], datetime] = lambda: datetime(2026, 11, 30, tzinfo=UTC)
        """Moment that it evaluates for."""
        self._vectors: dict[str, list[tuple[Mapping[str, str], float]]] = {}

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.answer)

    def put(self, expression: str, *samples: tuple[Mapping[str, str], float]) -> None:
        """Answer an expression with these series."""
        self._vectors[expression] = list(samples)

    def put_part(self, part: str, *samples: tuple[Mapping[str, str], float]) -> None:
        """Answer every expression that contains a text; exact ones go first."""
        self._vectors[f"*{part}"] = list(samples)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        if isinstance(self.down, Exception):
            raise self.down
        if isinstance(self.down, int):
            return httpx.Response(self.down, text="no healthy upstream")
        if request.method != "POST" or not request.url.path.endswith("/api/v1/query"):
            return httpx.Response(404, text="404 page not found")
        fields = parse_qs(request.content.decode())
        expression = fields["query"][0]
        self.queries.append(expression)
        time = float(fields["time"][0]) if "time" in fields else self.clock().timestamp()
        result = [
            {"metric": dict(labels), "value": [time, _number(value)]}
            for labels, value in self._samples(expression)
        ]
        body: dict[str, Any] = {"status": "success", "data": {"resultType": "vector", "result": result}}
        if self.warnings:
            body["warnings"] = self.warnings
        return httpx.Response(200, json=body)

    def _samples(self, expression: str) -> list[tuple[Mapping[str, str], float]]:
        if expression in self._vectors:
            return self._vectors[expression]
        parts = [key for key in self._vectors if key[0] == "*" and key[1:] in expression]
        return self._vectors[parts[0]] if parts else []


def _number(value: float) -> str:
    """A number as Prometheus writes it."""
    words = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}
    return words.get(str(value), str(value))
