"""Sources that users upload, by the hash of what they are.

Shell: speaks HTTP, keeps what comes in a temporary file.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import asdict
from http import HTTPStatus
from typing import IO

from tornado import web

from . import places
from .api_base import HandoffApi
from .archive import inspect, sha256_of
from .snapshot import Limits
from .verdicts import RefusalReason, RunRefusedError


@web.stream_request_body
class Snapshots(HandoffApi):
    """Uploaded sources, by the hash of what they are."""

    _file: IO[bytes] | None = None
    _size = 0

    async def prepare(self) -> None:
        """Let a larger body through than for anything else, to a signed-in user only."""
        await super().prepare()
        bounds = self.handoff.settings.bounds
        self._limits = Limits(files=bounds.source_files, size=bounds.source_size, packed=bounds.source_packed)
        # One more than is allowed, so that it is refused here and in plain words.
        self.request.connection.set_max_body_size(bounds.source_packed + 1)  # type: ignore[union-attr]

    async def data_received(self, chunk: bytes) -> None:
        """Keep a piece; a small upload stays in memory."""
        self._size += len(chunk)
        if self._size > self._limits.packed:
            raise RunRefusedError(RefusalReason.SOURCE_TOO_LARGE, "The archive is too large.", field="source")
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
        if self._file is None:
            raise RunRefusedError(RefusalReason.SOURCE_UNSAFE, "The upload is empty.", field="source")
        if await asyncio.to_thread(sha256_of, self._file) != digest:
            raise RunRefusedError(
                RefusalReason.SOURCE_UNSAFE, "The upload is not what its hash says.", field="source"
            )
        contents = await asyncio.to_thread(inspect, self._file, self._limits)
        self._file.seek(0)
        store = self.handoff.core.store
        await store.put(places.snapshot_path(self.user, digest), self._file)
        facts = json.dumps(asdict(contents), ensure_ascii=False)
        await store.put(places.contents_path(self.user, digest), facts.encode())
        self.set_status(HTTPStatus.CREATED)
        self.finish({"sha256": digest, "files": len(contents.files), "size": contents.size})

    def on_finish(self) -> None:
        """Let go of what was kept meanwhile."""
        if self._file is not None:
            self._file.close()
