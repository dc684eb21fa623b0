"""Errors of the Kubernetes API, by what one does about them.

::

    KubeError
    ├── NotFoundError      404
    ├── ConflictError      409: it exists already, or is not what it was when it was read
    ├── ForbiddenError     401, 403: the account may not
    ├── GoneError          410: list again before watching on
    ├── InvalidError       400, 422: the API server does not take the object
    └── UnavailableError   no answer, 429, 5xx

No clock, no network; names the errors of the client that the API is reached with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, TypedDict

import aiohttp

from hub_ext.cluster.sources import GoneError
from hub_ext.errors import KubeError


class NotFoundError(KubeError):
    """There is no such object, or no such kind of objects."""


class ConflictError(KubeError):
    """It exists already, or it is not what it was when it was read."""


class ForbiddenError(KubeError):
    """The account may not do this."""


class InvalidError(KubeError):
    """The API server does not take the object as it is."""


class UnavailableError(KubeError):
    """The API server does not answer, or has too much to do."""


@contextmanager
def own_errors(path: str) -> Iterator[None]:
    """Turn what the client's parts raise into errors of this module."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UnavailableError(f"no answer: {error!r}", **_place(path)) from error
    except ValueError as error:
        raise UnavailableError(f"the answer is no JSON: {error}", **_place(path)) from error


def error_of(path: str, status: int, text: str) -> KubeError:
    """Make the error of an answer; what the API server says about it comes along."""
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        said = {"message": text}
    return refusal(path, {**said, "code": status})


def refusal(path: str, said: Mapping[str, Any]) -> KubeError:
    status = int(said.get("code") or 0)
    message = str(said.get("message") or "no reason given")
    kind = _KINDS.get(status, UnavailableError if status >= 500 else KubeError)
    return kind(message[:1000], status=status or None, reason=str(said.get("reason") or ""), **_place(path))


class _Place(TypedDict):
    kind: str
    namespace: str
    name: str


def _place(path: str) -> _Place:
    """Read kind, namespace and name off a path, for the error."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind, name = [*rest, "", ""][:2]
    return {"kind": kind or path, "namespace": namespace, "name": name}


_KINDS: Final[Mapping[int, Callable[..., KubeError]]] = {
    HTTPStatus.BAD_REQUEST: InvalidError,
    HTTPStatus.UNAUTHORIZED: ForbiddenError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.GONE: GoneError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidError,
    HTTPStatus.TOO_MANY_REQUESTS: UnavailableError,
}
