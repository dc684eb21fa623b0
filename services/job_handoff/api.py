"""The REST interface, for programs, the workspace's command and the scripts of our pages.

Shell: speaks HTTP.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic_core import PydanticCustomError
from tornado import web

from hub_ext.errors import KubeError
from hub_ext.selection_access import Person, teams_of
from services.base import Api

from . import places
from .archive import inspect, sha256_of
from .cost import cost_of
from .model import check_path
from .offers import offers_for
from .openapi import describe
from .people import Asker, ask_hub
from .queue import as_json
from .seen import Seen, spent
from .snapshot import Limits
from .store import StoreError, refusal
from .verdicts import RefusalReason, RunRefusedError

if TYPE_CHECKING:
    from .app import JobHandoff

log = logging.getLogger(__name__)

MOST_LINES = 5000


class HandoffApi(Api):
    """Base of the interface: whoever asks, asks about their own runs."""

    @property
    def handoff(self) -> JobHandoff:
        found: JobHandoff = self.settings["service"]
        return found

    async def asker(self) -> Asker:
        """Read the one who asks from the hub, as they are at this moment."""
        return await ask_hub(self.handoff.core.hub, self.user)

    async def person(self) -> Person:
        """Give the one who asks."""
        return (await self.asker()).person

    def body(self) -> Any:
        """Read the body as JSON of any shape; a page of another site cannot send that type by itself."""
        sent = self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if sent != "application/json":
            raise RunRefusedError(
                RefusalReason.BAD_REQUEST, "Send application/json.", status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            )
        try:
            return json.loads(self.request.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise RunRefusedError(RefusalReason.BAD_REQUEST, "The body is not JSON.") from error

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Give refusals and failures of the store their own status."""
        error = refused(kwargs)
        super().send_error(error.status if error else status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer a refusal with its reason and its remedy."""
        error = refused(kwargs)
        if error is None:
            super().write_error(status_code, **kwargs)
        else:
            self.finish({"status": status_code, **error.as_dict()})

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """Log a refusal as one line: it is the answer, not a fault."""
        if isinstance(value, RunRefusedError):
            log.info("request refused: path=%s reason=%s", self.request.path, value.reason)
        else:
            super().log_exception(typ, value, tb)


def refused(kwargs: Mapping[str, Any]) -> RunRefusedError | None:
    """Read the refusal off what tornado hands to the writers of errors."""
    _, error, _ = kwargs.get("exc_info") or (None, None, None)
    if isinstance(error, RunRefusedError):
        return error
    if isinstance(error, StoreError):
        return refusal(error)
    if isinstance(error, KubeError):
        return RunRefusedError(
            RefusalReason.CLUSTER_UNAVAILABLE,
            "The cluster does not answer at the moment.",
            help="Try again in a minute.",
        )
    return None


def view(handoff: JobHandoff, seen: Seen) -> dict[str, Any]:
    """Give a run as JSON, with what it has cost so far."""
    now = handoff.core.now()
    cost = cost_of(seen.record, spent(seen.status, now))
    return seen.as_dict() | {"seconds": round(spent(seen.status, now).total_seconds()), "cost": cost}


class Description(HandoffApi):
    """What this interface is, for programs."""

    def get(self) -> None:
        self.finish(describe(self.handoff.context.prefix))


class Offers(HandoffApi):
    """What the one who asks may run: the button in JupyterLab asks this before it is shown."""

    async def get(self) -> None:
        asker = await self.asker()
        catalog, _ = await self.handoff.core.catalog()
        today = self.handoff.core.now().date()
        self.finish(
            offers_for(catalog, self.handoff.settings, asker.person, servers=asker.profiles, today=today)
        )


class Queues(HandoffApi):
    """The queues of one's teams: what they hold, what is used, how many wait."""

    async def get(self) -> None:
        person = await self.person()
        catalog, _ = await self.handoff.core.catalog()
        found = await asyncio.gather(
            *(self.handoff.core.cluster.queue(team) for team in teams_of(catalog, person))
        )
        self.finish({"queues": [as_json(queue) for queue in found if queue is not None]})


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


class Runs(HandoffApi):
    """One's runs, and a new one."""

    async def get(self) -> None:
        found = await self.handoff.board.mine(await self.person())
        self.finish({"runs": [view(self.handoff, one) for one in found]})

    async def post(self) -> None:
        dry_run = self.get_query_argument("dryRun", "false") == "true"
        result = await self.handoff.desk.submit(self.user, self.body(), dry_run=dry_run)
        self.set_status(HTTPStatus.CREATED if result.created else HTTPStatus.OK)
        self.finish(result.as_dict() | {"url": f"{self.handoff.context.prefix}runs/{result.record.id}"})


class Run(HandoffApi):
    """One run."""

    async def get(self, run: str) -> None:
        self.finish(view(self.handoff, await self.handoff.board.one(await self.person(), run)))


class Cancel(HandoffApi):
    """Ends a run."""

    async def post(self, run: str) -> None:
        self.body()
        seen = await self.handoff.actions.cancel(await self.person(), run)
        self.finish(view(self.handoff, seen))


class Retry(HandoffApi):
    """Does a run again, from its checkpoints where it failed."""

    async def post(self, run: str) -> None:
        body = self.body()
        key = body.get("key") if isinstance(body, dict) else None
        result = await self.handoff.actions.retry(await self.person(), run, key=key)
        self.set_status(HTTPStatus.CREATED if result.created else HTTPStatus.OK)
        self.finish(result.as_dict() | {"url": f"{self.handoff.context.prefix}runs/{result.record.id}"})


class Pause(HandoffApi):
    """Lets a schedule rest, or go on."""

    async def post(self, run: str, word: str) -> None:
        self.body()
        seen = await self.handoff.actions.pause(await self.person(), run, paused=word == "pause")
        self.finish(view(self.handoff, seen))


class Log(HandoffApi):
    """The last lines of what a run said, as plain text."""

    async def get(self, run: str) -> None:
        seen = await self.handoff.board.one(await self.person(), run)
        text = self.get_query_argument("lines", "500")
        lines = min(int(text), MOST_LINES) if text.isascii() and text.isdigit() and len(text) < 9 else 500
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(await self.handoff.board.log(seen, lines=max(1, lines)))


class Files(HandoffApi):
    """The results of a run."""

    async def get(self, run: str) -> None:
        seen = await self.handoff.board.one(await self.person(), run)
        files = await self.handoff.board.files(seen.record)
        self.finish({"files": [{"name": name, "size": size} for name, size in files.items()]})


class File(HandoffApi):
    """One result, to be saved: a notebook can carry scripts, which must not run as this site."""

    async def get(self, run: str, name: str) -> None:
        seen = await self.handoff.board.one(await self.person(), run)
        try:
            path = check_path(name)
        except PydanticCustomError:
            raise RunRefusedError(
                RefusalReason.UNKNOWN_RUN, "The run has no such file.", status=404
            ) from None
        size, pieces = await self.handoff.board.open(seen.record, path)
        plain = quote(path.rpartition("/")[2], safe="")
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{plain}")
        self.set_header("Content-Length", str(size))
        async for piece in pieces:
            self.write(piece)
            await self.flush()


class Nowhere(HandoffApi):
    """Whatever else is asked for below `api/`, answered as programs read it."""

    async def prepare(self) -> None:
        raise RunRefusedError(RefusalReason.UNKNOWN_RUN, "There is nothing here.", status=404)


ROUTES: tuple[tuple[str, type[HandoffApi], dict[str, Any]], ...] = (
    (r"api/openapi\.json", Description, {}),
    (r"api/offers", Offers, {}),
    (r"api/queues", Queues, {}),
    (r"api/snapshots/([0-9a-f]{64})", Snapshots, {}),
    (r"api/runs", Runs, {}),
    (r"api/runs/([a-z0-9-]{1,63})", Run, {}),
    (r"api/runs/([a-z0-9-]{1,63})/cancel", Cancel, {}),
    (r"api/runs/([a-z0-9-]{1,63})/retry", Retry, {}),
    (r"api/runs/([a-z0-9-]{1,63})/(pause|resume)", Pause, {}),
    (r"api/runs/([a-z0-9-]{1,63})/log", Log, {}),
    (r"api/runs/([a-z0-9-]{1,63})/files", Files, {}),
    (r"api/runs/([a-z0-9-]{1,63})/files/(.+)", File, {}),
    (r"api/.*", Nowhere, {}),
)
