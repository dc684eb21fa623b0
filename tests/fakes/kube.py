"""A Kubernetes API in memory, with the methods of `services.kube.Kube`.

Any kind of object can be kept. It gives uids and versions, refuses doubles, stale replacements, the wrong
uid and what the account may not, selects by labels and fields, and lets watchers see all changes. It runs
nothing: tests change what controllers would. What only tests may do ends in `_for_test`.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from services.kube import Listing
from services.kube_errors import refusal
from tests.fakes.kube_parts import Place, allows, merged
from tests.fakes.kube_selectors import matches

Object = dict[str, Any]

_KINDS: Final = {
    "pods": "Pod",
    "nodes": "Node",
    "namespaces": "Namespace",
    "jobs": "Job",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "events": "Event",
    "workloads": "Workload",
}


class FakeKube:
    """Objects, by where they are."""

    def __init__(
        self, *objects: Mapping[str, Any], rights: Iterable[Mapping[str, Any]] | None = None
    ) -> None:
        """Make a cluster.

        Parameters
        ----------
        objects
            What is in it: each with `apiVersion` and `kind`.
        rights
            Rules of a Role; anything else is refused. None for an administrator.
        """
        self.calls: list[tuple[str, str]] = []
        """Verb and path of all that was asked, in order."""
        self._rights = None if rights is None else [dict(rule) for rule in rights]
        self._objects: dict[tuple[str, str], dict[tuple[str, str], Object]] = {}
        self._history: list[tuple[int, tuple[str, str], str, Object]] = []
        self._versions = itertools.count(1)
        self._version = 0
        self._oldest = 0
        self._changed = asyncio.Event()
        self._failures: list[Exception] = []
        self._admission: Callable[[str, Object], tuple[int, str, str] | None] | None = None
        for one in objects:
            self.put_for_test(one)

    # What tests do

    def put_for_test(self, item: Mapping[str, Any]) -> Object:
        """Add an object, or put it in the place of the one of that name, as a controller does."""
        group = item["apiVersion"].rpartition("/")[0]
        plural = next((p for p, kind in _KINDS.items() if kind == item["kind"]), item["kind"].lower() + "s")
        key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
        before = self._objects.get((group, plural), {}).get(key)
        return self._store((group, plural), key, copy.deepcopy(dict(item)), before)

    def drop_for_test(self, path: str) -> None:
        """Take an object away, as a controller does."""
        place = Place.of(path)
        self._drop(place.collection, (place.namespace, place.name))

    def all_for_test(self, plural: str) -> Sequence[Object]:
        """All objects of a kind."""
        return [one for (_, p), kept in self._objects.items() if p == plural for one in kept.values()]

    def fail_for_test(self, *errors: Exception) -> None:
        """Raise these at the next calls."""
        self._failures += errors

    def admission_for_test(self, judge: Callable[[str, Object], tuple[int, str, str] | None]) -> None:
        """Ask before an object is created; an answer is a refusal: status, reason, message."""
        self._admission = judge

    def forget_for_test(self) -> None:
        """Forget all changes up to now: who watches from before has to list again."""
        self._oldest = self._version
        self._wake()

    # What `Kube` does

    async def get(self, path: str, **params: str) -> Object:
        place = self._begin("get" if Place.of(path).name else "list", path)
        if not place.name:
            raise ValueError(f"{path} is a collection: list it")
        return copy.deepcopy(self._find(path, place))

    async def find(self, path: str) -> Object | None:
        place = self._begin("get", path)
        found = self._objects.get(place.collection, {}).get((place.namespace, place.name))
        return copy.deepcopy(found)

    async def list(self, path: str, **params: str) -> Listing:
        place = self._begin("list", path)
        items = [self._listed(one) for one in self._selected(place, params)]
        return Listing(items=tuple(items), version=str(self._version))

    async def watch(
        self, path: str, resource_version: str, **params: str
    ) -> AsyncIterator[tuple[str, Object]]:
        place = self._begin("watch", path)
        seen = int(resource_version)
        while True:
            if seen < self._oldest:
                raise refusal(path, {"code": 410, "reason": "Expired", "message": "too old resource version"})
            self._changed.clear()
            for version, collection, change, item in list(self._history):
                if version > seen:
                    seen = version
                    if collection == place.collection and matches(item, place.namespace, params):
                        yield change, copy.deepcopy(item)
            await self._changed.wait()

    async def create(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        place = self._begin("create", path)
        item = copy.deepcopy(dict(body))
        metadata = item.setdefault("metadata", {})
        if "name" not in metadata:
            if "generateName" not in metadata:
                raise self._refuse(path, 422, "Invalid", "metadata.name: Required value")
            metadata["name"] = metadata["generateName"] + secrets.token_hex(3)[:5]
        if place.namespace and metadata.setdefault("namespace", place.namespace) != place.namespace:
            raise self._refuse(path, 400, "BadRequest", "the namespace of the object does not match")
        if self._admission and (said := self._admission(path, item)):
            raise self._refuse(path, *said)
        key = (place.namespace, metadata["name"])
        if key in self._objects.get(place.collection, {}):
            raise self._refuse(path, 409, "AlreadyExists", f'{place.plural} "{key[1]}" already exists')
        return item if dry_run else copy.deepcopy(self._store(place.collection, key, item, None))

    async def patch(self, path: str, body: Mapping[str, Any]) -> Object:
        place = self._begin("patch", path)
        before = self._find(path, place)
        return self._change(place, merged(before, body), before)

    async def delete(self, path: str, *, uid: str | None = None, propagation: str = "Background") -> bool:
        place = self._begin("delete", path)
        found = self._objects.get(place.collection, {}).get((place.namespace, place.name))
        if found is None:
            return False
        if uid is not None and uid != found["metadata"]["uid"]:
            raise self._refuse(path, 409, "Conflict", "the uid in the precondition does not match")
        self._drop(place.collection, (place.namespace, place.name))
        return True

    async def close(self) -> None:
        """Nothing is open."""

    # How it is kept

    def _begin(self, verb: str, path: str) -> Place:
        """Note a call and refuse it, if it is to fail or may not be."""
        self.calls.append((verb, path))
        if self._failures:
            raise self._failures.pop(0)
        place = Place.of(path)
        resource = f"{place.plural}/{place.subresource}" if place.subresource else place.plural
        if self._rights is not None and not any(
            allows(rule, verb, place.group, resource, place.name) for rule in self._rights
        ):
            action = f'cannot {verb} resource "{resource}" in API group "{place.group}"'
            message = f'{resource} is forbidden: User "test" {action}'
            raise self._refuse(path, 403, "Forbidden", message)
        return place

    def _refuse(self, path: str, status: int, reason: str, message: str) -> Exception:
        return refusal(path, {"code": status, "reason": reason, "message": message})

    def _find(self, path: str, place: Place) -> Object:
        found = self._objects.get(place.collection, {}).get((place.namespace, place.name))
        if found is None:
            raise self._refuse(path, 404, "NotFound", f'{place.plural} "{place.name}" not found')
        return found

    def _selected(self, place: Place, params: Mapping[str, str]) -> Sequence[Object]:
        kept = self._objects.get(place.collection, {})
        return [one for _, one in sorted(kept.items()) if matches(one, place.namespace, params)]

    def _listed(self, item: Object) -> Object:
        return {key: copy.deepcopy(value) for key, value in item.items() if key not in {"apiVersion", "kind"}}

    def _change(self, place: Place, item: Object, before: Object) -> Object:
        key = (place.namespace, place.name)
        return copy.deepcopy(self._store(place.collection, key, item, before))

    def _store(
        self, collection: tuple[str, str], key: tuple[str, str], item: Object, before: Object | None
    ) -> Object:
        old = before["metadata"] if before else {}
        self._version = next(self._versions)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = item["metadata"]
        metadata["uid"] = old.get("uid") or metadata.get("uid") or secrets.token_hex(8)
        metadata["creationTimestamp"] = (
            old.get("creationTimestamp") or metadata.get("creationTimestamp") or now
        )
        metadata["resourceVersion"] = str(self._version)
        self._objects.setdefault(collection, {})[key] = item
        self._note(collection, "MODIFIED" if before else "ADDED", item)
        return item

    def _drop(self, collection: tuple[str, str], key: tuple[str, str]) -> None:
        item = self._objects[collection].pop(key)
        self._version = next(self._versions)
        item["metadata"]["resourceVersion"] = str(self._version)
        self._note(collection, "DELETED", item)

    def _note(self, collection: tuple[str, str], change: str, item: Object) -> None:
        self._history.append((self._version, collection, change, copy.deepcopy(item)))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
