"""What the pods of a run may ask: the source of their run, and places for what it makes. Nothing else.

They prove by a token of the run who they are. It opens one run's own folder, cannot list or read results, and
is worth nothing at the hub.

Shell: speaks HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from pydantic_core import PydanticCustomError
from tornado import web

from . import places
from .ids import Claims, read_token
from .model import check_path
from .parts import Parts
from .room import LOG_SLACK
from .store import StoreError
from .verdicts import RunRefusedError

log = logging.getLogger(__name__)

FOLDERS: Final = ("outputs", "logs", "checkpoints")
TOKEN_HEADER: Final = "X-Run-Token"  # noqa: S105 - the name of a header
_QUEUED: Final = 4
"""Pieces of an upload that wait for the store."""


class RunnerHandler(web.RequestHandler):
    """Base: knows whose pod asks."""

    claims: Claims

    @property
    def handoff(self) -> Parts:
        found: Parts = self.settings["service"]
        return found

    def prepare(self) -> None:
        """Refuse who has no token for this run."""
        token = self.request.headers.get(TOKEN_HEADER, "")
        claims = read_token(self.handoff.core.secret, token, self.path_args[0])
        if claims is None:
            raise web.HTTPError(HTTPStatus.FORBIDDEN, "no token of this run")
        self.claims = claims

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer an error in one line; the runner writes it into the log of the run."""
        _, error, _ = kwargs.get("exc_info") or (None, None, None)
        message = HTTPStatus(status_code).phrase
        if isinstance(error, RunRefusedError):
            message = error.text
        elif isinstance(error, web.HTTPError) and error.log_message:
            message = error.log_message
        self.finish({"status": status_code, "message": message})

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Let the runner try again where the store may answer next time."""
        _, error, _ = kwargs.get("exc_info") or (None, None, None)
        if isinstance(error, StoreError):
            log.warning("store failed for a run: run=%s error=%s", self.path_args[0], error)
            status_code = (
                HTTPStatus.INSUFFICIENT_STORAGE if error.fault == "full" else HTTPStatus.SERVICE_UNAVAILABLE
            )
        if isinstance(error, RunRefusedError):
            status_code = error.status
        super().send_error(status_code, **kwargs)

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        if not isinstance(value, StoreError | RunRefusedError):
            super().log_exception(typ, value, tb)

    def name(self) -> str:
        """Read the name of a file that the run may put."""
        try:
            name = check_path(self.get_query_argument("name"))
        except PydanticCustomError as error:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "not a name below the run's folder") from error
        if name.partition("/")[0] not in FOLDERS or "/" not in name:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "not one of the run's folders")
        return name

    def size(self) -> int:
        """Read how many bytes the run is about to send."""
        text = self.get_query_argument("size", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "not a size")
        return int(text)

    def place(self, name: str) -> str:
        """Give the place of a file in the store."""
        folder, _, rest = name.partition("/")
        claims = self.claims
        if folder == "checkpoints":
            return places.checkpoint_folder(claims.team, claims.user, claims.lineage) + rest
        return places.file_path(claims.team, claims.user, claims.run, name)

    async def send(self, path: str) -> None:
        """Answer a file of the store."""
        found = await self.handoff.core.store.stream(path)
        if found is None:
            raise web.HTTPError(HTTPStatus.NOT_FOUND, "there is no such file")
        size, pieces = found
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Length", str(size))
        async for piece in pieces:
            self.write(piece)
            await self.flush()


def slack_of(name: str) -> float:
    """Say by how much a file may go beyond what its owner may keep."""
    return LOG_SLACK if name.startswith("logs/") else 1.0


class Source(RunnerHandler):
    """The source of the run."""

    async def get(self, _run: str, digest: str) -> None:
        await self.send(places.snapshot_path(self.claims.user, digest))


class Place(RunnerHandler):
    """Says where a file is to be put: at the store itself, or here."""

    async def get(self, _run: str) -> None:
        name, core = self.name(), self.handoff.core
        place, size = self.place(name), self.size()
        signed = None
        if self.handoff.settings.store.direct:
            await core.kept.note(self.claims.user, place, size, slack=slack_of(name))
            signed = await core.store.sign("PUT", place)
        else:
            await core.kept.check(self.claims.user, {place: size}, slack=slack_of(name))
        self.finish({"url": signed or f"file?name={quote(name)}", "signed": signed is not None})


@web.stream_request_body
class Put(RunnerHandler):
    """Takes in a file piece by piece; one that breaks off leaves what was there before."""

    def initialize(self) -> None:
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED)
        self._writing: asyncio.Task[bool] | None = None

    def prepare(self) -> None:
        """Begin to write as soon as the first pieces come."""
        super().prepare()
        most = self.handoff.settings.bounds.output_size
        self.request.connection.set_max_body_size(most)  # type: ignore[union-attr]
        told = self.request.headers.get("Content-Length", "")
        if not (told.isascii() and told.isdigit()):
            raise web.HTTPError(HTTPStatus.LENGTH_REQUIRED, "say how long it is")
        self._writing = asyncio.create_task(self._write(self.name(), int(told)))
        # An upload that breaks off is not there to ask; its client hears nothing any more.
        self._writing.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _write(self, name: str, size: int) -> bool:
        core, path = self.handoff.core, self.place(name)
        async with core.kept.adding(self.claims.user, {path: size}, slack=slack_of(name)):
            return await core.store.put(path, self._read())

    async def _read(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def data_received(self, chunk: bytes) -> None:
        """Hand a piece on; the client waits while the store is slow.

        Once the store has given up, the rest is read and dropped: a client hears why only after it has sent
        everything, and `put` says it.
        """
        await self._hand_on(chunk)

    async def _hand_on(self, piece: bytes | None) -> asyncio.Task[bool]:
        """Let the store have a piece, or the end, unless it takes nothing any more."""
        assert self._writing is not None  # noqa: S101 - `prepare` began it
        waiting = asyncio.ensure_future(self._pieces.put(piece))
        await asyncio.wait({waiting, self._writing}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return self._writing

    async def put(self, _run: str) -> None:
        await (await self._hand_on(None))
        self.set_status(HTTPStatus.NO_CONTENT)

    def on_connection_close(self) -> None:
        """End an upload that broke off: half a file is none."""
        if self._writing is not None and not self._writing.done():
            self._writing.cancel()


class Checkpoints(RunnerHandler):
    """The checkpoints of the run and of those that it goes on from, and how often it was begun before."""

    async def get(self, _run: str) -> None:
        claims = self.claims
        folder = places.checkpoint_folder(claims.team, claims.user, claims.lineage)
        logs = places.file_path(claims.team, claims.user, claims.run, "logs/")
        found, said = await self.handoff.core.store.list(folder), await self.handoff.core.store.list(logs)
        names = places.names_of((one.path for one in found), folder)
        attempts = sum(1 for one in said if one.path.endswith(".log"))
        self.finish({"files": list(names), "attempts": attempts})


class Checkpoint(RunnerHandler):
    """One checkpoint."""

    async def get(self, _run: str) -> None:
        try:
            name = check_path(self.get_query_argument("name"))
        except PydanticCustomError as error:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "not a name below the run's folder") from error
        await self.send(self.place(f"checkpoints/{name}"))


RUNNER_ROUTES: tuple[tuple[str, type[RunnerHandler], dict[str, Any]], ...] = (
    (r"runner/([a-z0-9-]{1,63})/source/([0-9a-f]{64})", Source, {}),
    (r"runner/([a-z0-9-]{1,63})/place", Place, {}),
    (r"runner/([a-z0-9-]{1,63})/file", Put, {}),
    (r"runner/([a-z0-9-]{1,63})/checkpoints", Checkpoints, {}),
    (r"runner/([a-z0-9-]{1,63})/checkpoint", Checkpoint, {}),
)
