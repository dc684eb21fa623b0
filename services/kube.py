"""The Kubernetes API, as services use it: any path, objects as the API spells them.

Foreign exceptions end here, as errors of `kube_errors`. For one shared picture of nodes and pods take
`hub_ext.cluster.watch.ClusterWatch` with `Kube.api`; this client is for everything else.

Shell: talks to the Kubernetes API.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Final, Self

import aiohttp
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from hub_ext.cluster.sources import CONNECT_TIMEOUT, READ_TIMEOUT, WATCH_SECONDS, GoneError, lines
from hub_ext.errors import KubeError

from .kube_errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnavailableError,
    error_of,
    own_errors,
    refusal,
)
from .kube_parts import Listing, Object, api_path
from .retries import persistently

__all__ = [
    "ConflictError",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "Kube",
    "KubeError",
    "Listing",
    "NotFoundError",
    "UnavailableError",
    "api_path",
]


PAGE: Final = 500
"""Objects per answer of a list."""
MANAGER: Final = "gpu-workspaces"
"""Who the API server says has set a field."""
_MERGE: Final = "application/merge-patch+json"
_TIMEOUT: Final = (CONNECT_TIMEOUT, READ_TIMEOUT)


class Kube:
    """A client of one cluster. Use it in ``async with``, or call `close`."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api

    @classmethod
    async def connect(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Make a client with the kubeconfig in `KUBECONFIG`, or else with the pod's own account.

        Raises
        ------
        KubeError
            There is neither, or it cannot be read.
        """
        made = Configuration()
        try:
            if file := environment.get("KUBECONFIG"):
                await config.load_kube_config(config_file=file, client_configuration=made)
            else:
                config.load_incluster_config(client_configuration=made)
        except (config.ConfigException, OSError, ValueError) as error:
            raise KubeError(
                f"no way to reach a cluster: {error}; run in a pod with an account, or set KUBECONFIG",
                kind="Configuration",
            ) from error
        return cls(ApiClient(configuration=made))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.api.close()

    # Reading: asked again where the API server may answer next time

    async def get(self, path: str, **params: str) -> Object:
        """Read one object, or anything else that the API answers as JSON."""
        return await persistently(lambda: self._do("GET", path, params))

    async def find(self, path: str) -> Object | None:
        """Read one object; None if there is none."""
        try:
            return await self.get(path)
        except NotFoundError:
            return None

    async def text(self, path: str, **params: str) -> str:
        """Read what is no JSON, such as the log of a pod."""

        async def ask() -> str:
            with own_errors(path):
                response = await self._send("GET", path, params, accept="*/*")
                try:
                    found = await response.text(errors="replace")
                finally:
                    response.release()
                if response.status != HTTPStatus.OK:
                    raise error_of(path, response.status, found)
                return found

        return await persistently(ask)

    async def list(self, path: str, **params: str) -> Listing:
        """List a collection as it was at one moment; `params` in the API's words, such as `labelSelector`.

        Raises
        ------
        GoneError
            Reading the pages took longer than the API server remembers the list.
        """
        items: list[Object] = []
        token, version = "", ""
        while True:
            more = {"continue": token} if token else {}
            body = await self.get(path, **{"limit": str(PAGE), **params, **more})
            items += body.get("items") or []
            metadata = body.get("metadata") or {}
            version, token = metadata.get("resourceVersion") or version, metadata.get("continue") or ""
            if not token:
                return Listing(items=tuple(items), version=version)

    async def watch(
        self, path: str, resource_version: str, **params: str
    ) -> AsyncIterator[tuple[str, Object]]:
        """Give changes since a version: their type and the object, `BOOKMARK` included.

        Ends when the API server ends it, after some minutes: watch on from the last version seen.

        Raises
        ------
        GoneError
            That version is forgotten: list again.
        """
        query = {
            **params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with own_errors(path):
            response = await self._send("GET", path, query)
            try:
                if response.status != HTTPStatus.OK:
                    raise error_of(path, response.status, await response.text())
                async for line in lines(response):
                    change = json.loads(line)
                    if change["type"] == "ERROR":
                        raise refusal(path, change["object"])
                    yield change["type"], change["object"]
            finally:
                # The rest of a watch is endless: the connection cannot be used again.
                response.close()

    # Writing: asked for once

    async def create(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Create an object in a collection; raises `ConflictError` if it exists."""
        return await self._do("POST", path, {"fieldManager": MANAGER, **_dry(dry_run)}, body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> Object:
        """Change parts of an object, by a merge patch."""
        return await self._do("PATCH", path, {"fieldManager": MANAGER}, body, _MERGE)

    async def delete(self, path: str, *, uid: str | None = None, propagation: str = "Background") -> bool:
        """Delete one object; False if it was gone before.

        Parameters
        ----------
        uid
            Of the object that is meant: raises `ConflictError` if another one has its name by now.
        """
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            **({"preconditions": {"uid": uid}} if uid is not None else {}),
        }
        try:
            await self._do("DELETE", path, {}, options)
        except NotFoundError:
            return False
        return True

    async def _do(
        self, method: str, path: str, query: Mapping[str, str], body: Any = None, content: str = ""
    ) -> Object:
        with own_errors(path):
            response = await self._send(method, path, query, body, content)
            try:
                text = await response.text()
            finally:
                response.release()
            if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                raise error_of(path, response.status, text)
            found: Object = json.loads(text)
            return found

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any = None,
        content: str = "",
        *,
        accept: str = "application/json",
    ) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self.api.call_api(
            path,
            method,
            query_params=list(query.items()),
            header_params={"Accept": accept, **({"Content-Type": content} if content else {})},
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=_TIMEOUT,
        )
        return response


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
