"""Sources that users upload, by the hash of what they are.

Shell: speaks HTTP, keeps what comes in a temporary file.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import asdict
from http import HTTPStatus
from typing import IO, Final

from tornado import web

from . import places
from .api_base import HandoffApi
from .archive import inspect
from .judge import MOST_CONTENTS
from .packing import sha256_of
from .snapshot import Limits, check_packed
from .verdicts import RefusalReason, RunRefusedError

HEARD: Final = 1024 * 1024 * 1024
"""Bytes of an upload that is too large which are read and dropped: a client that is cut off while it sends
never reads why."""


@web.stream_request_body
class Snapshots(HandoffApi):
    """Uploaded sources, by the hash of what they are."""

    _file: IO[bytes] | None = None
    _told = 0
    """Bytes that the client says it sends."""
    _size = 0
    """Bytes that came."""

    async def prepare(self) -> None:
        """Let a larger body through than for anything else, to a signed-in user only."""
        await super().prepare()
        bounds = self.handoff.settings.bounds
        self._limits = Limits(files=bounds.source_files, size=bounds.source_size, packed=bounds.source_packed)
        told = self.request.headers.get("Content-Length", "0")
        self._told = int(told) if told.isascii() and told.isdigit() else 0
        most = max(HEARD, bounds.source_packed)
        if self._told > most:
            check_packed(self._told, self._limits)
        self.request.connection.set_max_body_size(most)  # type: ignore[union-attr]

    async def data_received(self, chunk: bytes) -> None:
        """Keep a piece, or none of an upload that is too large; a small one stays in memory."""
        self._size += len(chunk)
        if max(self._told, self._size) > self._limits.packed:
            self._let_go()
            return
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(max_size=4 * 1024 * 1024)  # noqa: SIM115
        await asyncio.to_thread(self._file.write, chunk)

    async def get(self, digest: str) -> None:
        """Say whether a source is there, so that it need not be sent again."""
        found = await self.handoff.core.store.get(places.contents_path(self.user, digest))
        if found is None:
            raise RunRefusedError(RefusalReason.SOURCE_MISSING, "There is no such source.", status=404)
        self.finish(json.loads(found))

    async def put(self, digest: str) -> None:
        """Take in a source, if it is what its name says and keeps the rules."""
        check_packed(self._size, self._limits)
        if self._file is None:
            raise RunRefusedError(RefusalReason.SOURCE_UNSAFE, "The upload is empty.", field="source")
        if await asyncio.to_thread(sha256_of, self._file) != digest:
            raise RunRefusedError(
                RefusalReason.SOURCE_UNSAFE, "The upload is not what its hash says.", field="source"
            )
        contents = await asyncio.to_thread(inspect, self._file, self._limits)
        self._file.seek(0)
        await self._keep(digest, self._file, json.dumps(asdict(contents), ensure_ascii=False).encode())
        self.set_status(HTTPStatus.CREATED)
        self.finish({"sha256": digest, "files": len(contents.files), "size": contents.size})

    async def _keep(self, digest: str, file: IO[bytes], facts: bytes) -> None:
        """Put a source into the store, if its owner has room; sources that nothing needs make some."""
        if len(facts) > MOST_CONTENTS:
            raise RunRefusedError(
                RefusalReason.SOURCE_TOO_LARGE, "The names of the files are too long.", field="source"
            )
        core, user = self.handoff.core, self.user
        archive, contents = places.snapshot_path(user, digest), places.contents_path(user, digest)
        new = {archive: self._size, contents: len(facts)}
        try:
            await core.kept.check(user, new)
        except RunRefusedError:
            await self.handoff.remover.unused_sources(user)
        async with core.kept.adding(user, new):
            await core.store.put(archive, file)
            await core.store.put(contents, facts)

    def on_finish(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        """Let go of what was kept meanwhile."""
        if self._file is not None:
            self._file.close()
            self._file = None
