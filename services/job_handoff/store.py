"""The object store: S3, or a folder, spoken to through obstore.

Foreign exceptions end here. A store that does not answer, or is full, is named as such within seconds.

Shell: talks to the object store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any, Final, Literal

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
)
from obstore.store import LocalStore, S3Store

from hub_ext.errors import RemoteError

from .settings import StoreSettings
from .store_faults import Fault, fault_of
from .verdicts import RefusalReason, RunRefusedError

log = logging.getLogger(__name__)

LARGEST_READ: Final = 64 * 1024 * 1024
"""Bytes that are read into memory at once: records, logs, small sources."""
CHUNK: Final = 5 * 1024 * 1024
_AT_ONCE: Final = 16
"""Objects that are deleted at the same time."""
SIGNED_FOR: Final = timedelta(minutes=30)
_TIMES: Final[Mapping[str, Any]] = {
    "client_options": {"connect_timeout": "3s", "read_timeout": "20s", "timeout": "2h"},
    "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=15)},
}


class StoreError(RemoteError):
    """The object store did not do what it was asked."""

    def __init__(self, what: str, *, fault: Fault | None = None) -> None:
        self.fault = fault
        super().__init__(what, system="object store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One object of a list."""

    path: str
    size: int
    modified: datetime


class Store:
    """One prefix of a bucket, or one folder."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._signs = isinstance(store, S3Store)

    @classmethod
    def open(cls, settings: StoreSettings) -> Store:
        """Make a client; nothing is asked yet.

        Raises
        ------
        StoreError
            The settings do not name a store.
        """
        options: dict[str, Any] = {"region": settings.region or "us-east-1"}
        if settings.endpoint:
            options["endpoint"] = settings.endpoint
        client: Any = {**_TIMES["client_options"], **({"allow_http": True} if settings.allow_http else {})}
        try:
            if settings.url.startswith("file://"):
                return cls(LocalStore(settings.url.removeprefix("file://"), mkdir=True))
            retries = _TIMES["retry_config"]
            return cls(S3Store.from_url(settings.url, client_options=client, retry_config=retries, **options))
        except (BaseError, ValueError, TypeError) as error:
            raise StoreError(f"{settings.url}: {error}") from error

    async def put(
        self, path: str, content: bytes | IO[bytes] | AsyncIterator[bytes], *, new: bool = False
    ) -> bool:
        """Write an object; False if `new` was asked for and it exists.

        Raises
        ------
        StoreError
            It could not be written; what was there before is still there.
        """
        with _own_errors(path):
            try:
                if new:
                    await obstore.put_async(self._store, path, content, mode="create", use_multipart=False)
                else:
                    await obstore.put_async(self._store, path, content, chunk_size=CHUNK, max_concurrency=2)
            except AlreadyExistsError:
                return False
        return True

    async def get(self, path: str, *, most: int = LARGEST_READ) -> bytes | None:
        """Read a whole object; None if there is none.

        Raises
        ------
        StoreError
            It is larger than `most`, or could not be read.
        """
        with _own_errors(path):
            try:
                found = await obstore.get_async(self._store, path)
            except (NotFoundError, FileNotFoundError):
                return None
            if found.meta["size"] > most:
                raise StoreError(f"{path} is too large to be read at once: {found.meta['size']} bytes")
            return bytes(await found.bytes_async())

    async def stream(self, path: str) -> tuple[int, AsyncIterator[bytes]] | None:
        """Read an object piece by piece: its size and the pieces; None if there is none."""
        with _own_errors(path):
            try:
                found = await obstore.get_async(self._store, path)
            except (NotFoundError, FileNotFoundError):
                return None
        return found.meta["size"], self._pieces(path, found)

    async def _pieces(self, path: str, found: Any) -> AsyncIterator[bytes]:
        with _own_errors(path):
            async for piece in found.stream(min_chunk_size=1024 * 1024):
                yield bytes(piece)

    async def size(self, path: str) -> int | None:
        """Give the size of an object; None if there is none."""
        with _own_errors(path):
            try:
                return int((await obstore.head_async(self._store, path))["size"])
            except (NotFoundError, FileNotFoundError):
                return None

    async def list(self, prefix: str) -> tuple[Found, ...]:
        """List what is below a prefix, in the order of the names."""
        found: list[Found] = []
        with _own_errors(prefix):
            async for batch in obstore.list(self._store, prefix=prefix):
                found += [
                    Found(path=one["path"], size=int(one["size"]), modified=one["last_modified"])
                    for one in batch
                ]
        return tuple(sorted(found, key=lambda one: one.path))

    async def folders(self, prefix: str) -> tuple[str, ...]:
        """List the names that stand directly below a prefix and have something below them."""
        with _own_errors(prefix):
            found = await obstore.list_with_delimiter_async(self._store, prefix=prefix or None)
        return tuple(sorted(one.rstrip("/").rpartition("/")[2] for one in found["common_prefixes"]))

    async def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; what is gone already is no error."""
        with _own_errors(paths[0] if paths else ""):
            for start in range(0, len(paths), _AT_ONCE):
                await asyncio.gather(*(self._delete(path) for path in paths[start : start + _AT_ONCE]))

    async def _delete(self, path: str) -> None:
        with contextlib.suppress(NotFoundError, FileNotFoundError):
            await obstore.delete_async(self._store, path)

    async def sign(self, method: Literal["GET", "PUT"], path: str) -> str | None:
        """Give an address with which anyone may do one thing with one object for a while.

        None where the store has no such addresses.
        """
        if not self._signs:
            return None
        with _own_errors(path):
            address: str = await obstore.sign_async(self._store, method, path, SIGNED_FOR)
            return address


@contextmanager
def _own_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        text = " ".join(str(error).split())[:400]
        raise StoreError(f"{path}: {text}", fault=fault_of(error, path)) from error


def refusal(error: StoreError) -> RunRefusedError:
    """Say to a user what a failure of the store means for them; the log has the rest."""
    log.warning("store failed: error=%s", error)
    if error.fault == "full":
        return RunRefusedError(
            RefusalReason.STORE_FULL,
            "The object store is full, so the source cannot be kept.",
            help="Please tell an administrator.",
        )
    if error.fault == "denied":
        return RunRefusedError(
            RefusalReason.STORE_UNAVAILABLE,
            "The object store does not let this service in.",
            help="Please tell an administrator.",
        )
    return RunRefusedError(
        RefusalReason.STORE_UNAVAILABLE,
        "The object store does not answer at the moment.",
        help="Nothing was submitted. Try again in a minute.",
    )
