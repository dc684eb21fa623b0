"""The REST interface, for programs, the workspace's command and the scripts of our pages.

Shell: speaks HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from pydantic_core import PydanticCustomError

from hub_ext.selection_access import teams_of

from .api_base import HandoffApi
from .cost import cost_of
from .model import check_path
from .offers import offers_for
from .openapi import describe
from .parts import Parts
from .queue_facts import as_json
from .seen import Seen, spent
from .uploads import Snapshots
from .verdicts import RefusalReason, RunRefusedError

log = logging.getLogger(__name__)

MOST_LINES = 5000


def view(handoff: Parts, seen: Seen) -> dict[str, Any]:
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


class Usage(HandoffApi):
    """What one keeps in the store, and how much one may."""

    async def get(self) -> None:
        shelf = await self.handoff.core.kept.usage(self.user)
        self.finish(shelf.as_dict(self.handoff.settings.bounds))


class Runs(HandoffApi):
    """One's runs, and a new one."""

    async def get(self) -> None:
        found, problem = await self.found()
        notice = {"notice": problem} if problem else {}
        self.finish({"runs": [view(self.handoff, one) for one in found], **notice})

    async def post(self) -> None:
        dry_run = self.get_query_argument("dryRun", "false") == "true"
        result = await self.handoff.desk.submit(self.user, self.body(), dry_run=dry_run)
        self.set_status(HTTPStatus.CREATED if result.created else HTTPStatus.OK)
        self.finish(result.as_dict() | {"url": f"{self.handoff.context.prefix}runs/{result.record.id}"})


class Run(HandoffApi):
    """One run."""

    async def get(self, run: str) -> None:
        self.finish(view(self.handoff, await self.handoff.board.one(await self.person(), run)))

    async def delete(self, run: str) -> None:
        """Remove a run that has ended, with all that it left behind."""
        self.finish({"files": await self.handoff.remover.run(await self.person(), run)})


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
    (r"api/usage", Usage, {}),
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
