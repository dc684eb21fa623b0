"""What is watched, and the one place that knows how Kubernetes lists and watches it.

Shell: talks to the Kubernetes API.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from kubernetes_asyncio.client import ApiClient, CoreV1Api, CustomObjectsApi

from ..errors import KubeError
from .kinds import Kind

PAGE: Final = 100
"""Objects per answer of a list: reading one blocks the event loop for some milliseconds."""
WATCH_SECONDS: Final = 290
"""Longest a watch is asked to run; it goes on from where it was, without another list."""
READ_TIMEOUT: Final = 120
"""Seconds without any byte after which a watch is taken for dead. Bookmarks come about once a minute."""
CONNECT_TIMEOUT: Final = 10
_KUEUE: Final = ("kueue.x-k8s.io", "v1beta1")
"""Served by Kueue since 0.2 and still in 0.19 beside `v1beta2`; the fields that are read are the same."""


class GoneError(KubeError):
    """The resource version is too old: list again."""


class DeniedError(KubeError):
    """The account may not see this, or the cluster has no such thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One collection that is watched."""

    kind: Kind
    namespace: str = ""
    """Empty for those of the whole cluster."""
    field_selector: str = ""
    required: bool = False
    """Without it nothing works; the others may be denied."""
    call: Callable[..., Any] = field(repr=False, compare=False)
    """Typed method of a Kubernetes client that lists the collection."""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def label(self) -> str:
        return f"{self.kind.value} in {self.namespace}" if self.namespace else self.kind.value


def sources(
    api: ApiClient, namespaces: Iterable[str], run_namespaces: Iterable[str] = (), *, kueue: bool = True
) -> tuple[Source, ...]:
    """Name everything that is watched.

    Parameters
    ----------
    namespaces
        Where workspaces are; their pods are required.
    run_namespaces
        Where only runs are: their pods and workloads count, nobody waits for them.
    """
    core, custom = CoreV1Api(api), CustomObjectsApi(api)
    own = tuple(dict.fromkeys(namespaces))
    runs = tuple(name for name in dict.fromkeys(run_namespaces) if name not in own)
    found = [
        Source(kind=Kind.NODES, call=core.list_node),
        Source(
            kind=Kind.OUTSIDE,
            call=core.list_pod_for_all_namespaces,
            field_selector=",".join(
                [
                    "spec.nodeName!=",
                    "status.phase!=Succeeded",
                    "status.phase!=Failed",
                    *(f"metadata.namespace!={name}" for name in own),
                ]
            ),
        ),
    ]
    for name in own:
        found += [
            _namespaced(Kind.PODS, name, core.list_namespaced_pod, required=True),
            _namespaced(Kind.EVENTS, name, core.list_namespaced_event),
            _namespaced(Kind.QUOTAS, name, core.list_namespaced_resource_quota),
            _namespaced(Kind.LIMIT_RANGES, name, core.list_namespaced_limit_range),
        ]
    found += [_namespaced(Kind.PODS, name, core.list_namespaced_pod) for name in runs]
    if kueue:
        found += [_workloads(name, custom) for name in (*own, *runs)]
    return tuple(found)


def _workloads(namespace: str, custom: CustomObjectsApi) -> Source:
    group, version = _KUEUE
    return Source(
        kind=Kind.WORKLOADS,
        namespace=namespace,
        call=custom.list_namespaced_custom_object,
        arguments={"group": group, "version": version, "namespace": namespace, "plural": "workloads"},
    )


def _namespaced(kind: Kind, namespace: str, call: Callable[..., Any], *, required: bool = False) -> Source:
    return Source(
        kind=kind, namespace=namespace, call=call, arguments={"namespace": namespace}, required=required
    )


async def pages(source: Source) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
    """List a collection page by page; each comes with the resource version of the list as a whole.

    Raises
    ------
    GoneError
        The list took longer than the server remembers it.
    DeniedError
        See `_check`.
    KubeError
        Anything else that the API answered.
    """
    token = ""
    while True:
        query: dict[str, Any] = {"limit": PAGE, **({"_continue": token} if token else {})}
        response = await _request(source, query)
        try:
            body = json.loads(await response.read())
        finally:
            response.release()
        metadata = body.get("metadata") or {}
        yield body.get("items") or [], metadata.get("resourceVersion", "")
        token = metadata.get("continue") or ""
        if not token:
            return


async def changes(source: Source, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Watch a collection from a resource version: type of the change and the object, bookmarks included.

    Ends when the server ends it. Raises as `pages`.
    """
    query = {
        "watch": True,
        "allow_watch_bookmarks": True,
        "resource_version": version,
        "timeout_seconds": WATCH_SECONDS,
    }
    response = await _request(source, query)
    try:
        async for line in lines(response):
            change = json.loads(line)
            item = change["object"]
            if change["type"] == "ERROR":
                _raise(source, int(item.get("code") or 0), item.get("message") or "")
            yield change["type"], item
    finally:
        # The rest of a watch is endless: the connection cannot be used again.
        response.close()


async def lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Split a body into lines of any length: a node with many images is longer than a read buffer."""
    parts: list[bytes] = []
    async for chunk in response.content.iter_any():
        *done, rest = chunk.split(b"\n")
        for piece in done:
            line = b"".join([*parts, piece])
            parts = []
            if line:
                yield line
        if rest:
            parts.append(rest)


async def _request(source: Source, query: Mapping[str, Any]) -> aiohttp.ClientResponse:
    if source.field_selector:
        query = {**query, "field_selector": source.field_selector}
    try:
        response: aiohttp.ClientResponse = await source.call(
            **source.arguments,
            **query,
            _preload_content=False,
            _request_timeout=(CONNECT_TIMEOUT, READ_TIMEOUT),
        )
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise KubeError(
            f"no answer: {error!r}", kind=source.kind.value, namespace=source.namespace
        ) from error
    if response.status != HTTPStatus.OK:
        text = await response.text()
        response.release()
        _raise(source, response.status, text)
    return response


def _raise(source: Source, status: int, message: str) -> None:
    """Raise what a status means: 410 to list again, 401, 403 and 404 that this cannot be seen."""
    kinds = {
        HTTPStatus.GONE: GoneError,
        HTTPStatus.UNAUTHORIZED: DeniedError,
        HTTPStatus.FORBIDDEN: DeniedError,
        HTTPStatus.NOT_FOUND: DeniedError,
    }
    error = kinds.get(HTTPStatus(status) if status in _KNOWN else HTTPStatus.OK, KubeError)
    raise error(message[:300], kind=source.kind.value, namespace=source.namespace, status=status)


_KNOWN: Final = frozenset(int(status) for status in HTTPStatus)
