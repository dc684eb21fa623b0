"""An API server and a spawner's user for tests of spawners, and what tests do with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from aiohttp import ClientConnectionError
from kubernetes_asyncio.client.rest import ApiException

from hub_ext.spawner import WorkspaceSpawner
from hub_ext.spawner_objects import to_object
from tests.fakes.kube_selectors import matches


def status(code: int, **fields: Any) -> ApiException:
    """Make the exception of the client for an answer of the API server."""
    error = ApiException(status=code, reason="")
    error.body = json.dumps({"kind": "Status", **fields})
    return error


class Answer:
    """What the client gives for a request whose answer it shall not read."""

    def __init__(self, code: int, **fields: Any) -> None:
        self.status = code
        self._body = json.dumps({"kind": "Status", **fields}).encode()

    async def read(self) -> bytes:
        return self._body

    def release(self) -> None:
        """Keep nothing."""


class Api:
    """Answers what a test lays out, and keeps what it was asked."""

    def __init__(self, client: Any) -> None:
        self.api_client = client
        self.answers: list[Answer | Exception] = []
        self.claim: Any = None
        self.silent = 0
        self.homes: list[Any] = []
        self.claims: list[Any] = []
        self.created: list[Any] = []
        self.tried: list[Any] = []
        self.grace: list[int] = []
        self.volumes: dict[str, Any] = {}
        """Those that may be read."""
        self.looked: list[str] = []
        self.asked: list[str] = []
        """Names of claims that were asked for, and selectors of lists of them."""

    async def create_namespaced_pod(
        self, _namespace: str, pod: Any, *, _preload_content: bool, dry_run: str = ""
    ) -> Answer:
        assert not _preload_content
        (self.tried if dry_run else self.created).append(pod)
        answer = self.answers.pop(0) if self.answers else Answer(201)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def create_namespaced_persistent_volume_claim(self, *, namespace: str, body: Any) -> None:
        assert namespace
        self.claims.append(body)

    async def delete_namespaced_pod(self, *, grace_period_seconds: int, body: Any, **_: Any) -> None:
        assert body.grace_period_seconds == grace_period_seconds
        self.grace.append(grace_period_seconds)

    async def read_namespaced_persistent_volume_claim(self, name: str, _namespace: str) -> Any:
        self.asked.append(name)
        if self.silent:
            self.silent -= 1
            raise ClientConnectionError("gone")
        named = [one for one in self.homes if one.metadata.name == name]
        if self.claim is None and not named:
            raise status(404, reason="NotFound")
        return self.claim or named[0]

    async def read_persistent_volume(self, name: str) -> Any:
        self.looked.append(name)
        if name not in self.volumes:
            raise status(403, reason="Forbidden")
        found = self.volumes[name]
        if isinstance(found, Exception):
            raise found
        return found

    async def list_namespaced_persistent_volume_claim(self, namespace: str, *, label_selector: str) -> Any:
        self.asked.append(label_selector)
        asked = {"labelSelector": label_selector}
        labels = [{"metadata": {"namespace": namespace, "labels": one.metadata.labels}} for one in self.homes]
        found = [matches(one, namespace, asked) for one in labels]
        return SimpleNamespace(items=[one for one, match in zip(self.homes, found, strict=True) if match])


async def pod_of(spawner: WorkspaceSpawner, options: Mapping[str, Any]) -> dict[str, Any]:
    """Render the pod of one attempt."""
    spawner.user_options = dict(options)
    await spawner.load_user_options()
    return to_object(spawner.api.api_client, await spawner.get_pod_manifest())
