"""The pages: one's runs, a new one, one of them, and all for admins.

They work without their scripts; the scripts ask the same REST interface as everybody.

Shell: speaks HTTP.
"""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from tornado import web

from hub_ext.units import gib
from services.base import Page

from . import places
from .api_base import Asked, refused
from .form import fields_of, request_of
from .ids import base_id
from .offers import offers_for
from .seen import Seen
from .store import StoreError, refusal
from .verdicts import RefusalReason, RunRefusedError
from .view import KINDS, Row, entries_of, row_of, view_of

FIELDS = (
    *(
        "snapshot",
        "path",
        "name",
        "parameters",
        "arguments",
        "team",
        "priority",
        "maxDuration",
        "retries",
        "launcher",
        "kernel",
    ),
    *("cron", "timeZone", "server", "image", "release", "resumeFrom"),
)
"""Fields of the form that may be empty."""
SENT_BEFORE = "This page was sent before with other values. Press Run again if you want a second run."
GONE = "The profile of that run is not offered to you any more. Please choose another one."
_QUERY = ("server", "snapshot", "path", "kernel")


class HandoffPage(Asked, Page):
    """Base of the pages."""

    @property
    def is_admin(self) -> bool:
        return bool(self.model.get("admin"))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Show a refusal in its own words."""
        error = refused(kwargs)
        if error is None:
            super().write_error(status_code, **kwargs)
        else:
            self.show("error.html", status=status_code, message=error.text)


class Mine(HandoffPage):
    """One's runs."""

    async def get(self) -> None:
        query = {
            name: self.get_query_argument(name) for name in _QUERY if name in self.request.query_arguments
        }
        if query:
            self.redirect(f"{self.handoff.context.prefix}new?{urlencode(query)}")
            return
        found, problem = await self.found()
        self.show_list(found, everyone=False, problem=problem, usage=await self.usage())

    async def usage(self) -> str:
        """Say how much one keeps, and may; nothing where the store does not answer."""
        try:
            shelf = await self.handoff.core.kept.usage(self.user)
        except StoreError:
            return ""
        bounds = self.handoff.settings.bounds
        if not shelf.sizes:
            return ""
        return f"Sources, results, logs and checkpoints: {gib(shelf.total)} of {gib(bounds.kept_size)}."

    def show_list(
        self, found: tuple[Seen, ...], *, everyone: bool, problem: str = "", usage: str = ""
    ) -> None:
        """Show a list, what has not ended first."""
        now = self.handoff.core.now()
        rows = [row_of(seen, now) for seen in found]
        self.show(
            "list.html",
            active=[row for row in rows if not row.has_ended],
            ended=[row for row in rows if row.has_ended],
            everyone=everyone,
            problem=problem,
            usage=usage,
            is_admin=self.is_admin,
        )


class Everyones(Mine):
    """The runs of everybody, for admins."""

    async def get(self) -> None:
        if not self.is_admin:
            raise web.HTTPError(HTTPStatus.FORBIDDEN, "this is for administrators")
        self.show_list(await self.handoff.board.everyones(), everyone=True)


class New(HandoffPage):
    """The form of a new run, filled in as far as the link that led here says it."""

    async def get(self) -> None:
        fields = {name: self.get_query_argument(name, "") for name in self.request.query_arguments}
        if origin := fields.pop("clone", ""):
            fields = await self._cloned(origin) | fields
        await self.show_form(fields)

    async def _cloned(self, run: str) -> dict[str, str]:
        """Fill in what another run asked for. It is read here: links are cut where they are long."""
        seen = await self.handoff.board.one(await self.person(), run)
        # A changed run begins anew, and stops no workspace unless that is asked for again.
        return fields_of({**seen.record.request, "resumeFrom": None, "release": False})

    async def post(self) -> None:
        fields = {name: self.get_body_argument(name, "") for name in self.request.body_arguments}
        fields.setdefault("image", "profile")  # a box that is not ticked is not sent
        trial = fields.get("do") == "check"
        try:
            result = await self.handoff.desk.submit(self.user, request_of(fields), dry_run=trial)
        except RunRefusedError as error:
            self.set_status(error.status)
            again = error.reason == RefusalReason.KEY_REUSED
            if again:
                fields["key"] = secrets.token_hex(16)
            await self.show_form(fields, refusal=SENT_BEFORE if again else error.text)
            return
        if trial:
            notices = [result.forecast.text, *result.told]
            await self.show_form(fields, forecast=result.forecast.when.value, notices=notices)
        else:
            self.redirect(
                f"{self.handoff.context.prefix}runs/{result.record.id}", status=HTTPStatus.SEE_OTHER
            )

    async def show_form(
        self,
        fields: dict[str, str],
        *,
        refusal: str = "",
        forecast: str = "",
        notices: list[str] | None = None,
    ) -> None:
        """Show the form with what was filled in."""
        core, asker = self.handoff.core, await self.asker()
        catalog, _ = await core.catalog()
        offers = offers_for(
            catalog, core.settings, asker.person, servers=asker.profiles, today=core.now().date()
        )
        files = await self._files(fields.get("snapshot", ""))
        profiles = offers["profiles"]
        fields.setdefault("key", secrets.token_hex(16))
        fields.setdefault("profile", profiles[0]["name"] if profiles else "")
        gone = profiles and fields["profile"] not in {one["name"] for one in profiles}
        self.show(
            "new.html",
            offers=offers,
            kinds=KINDS,
            fields=dict.fromkeys(FIELDS, "") | fields,
            from_server="server" in fields,
            entries=entries_of(files or ()),
            source_known=files is not None,
            refusal=refusal or offers["refusal"] or (GONE if gone else ""),
            forecast=forecast,
            notices=notices or [],
        )

    async def _files(self, digest: str) -> list[str] | None:
        """Name the files of an uploaded source; None if there is none."""
        if len(digest) != 64 or not digest.isalnum():
            return None
        found = await self.handoff.core.store.get(places.contents_path(self.user, digest))
        files: list[str] = json.loads(found)["files"] if found else []
        return files if found else None


class Clone(HandoffPage):
    """The form of a new run, filled in with what another one asked for."""

    async def get(self, run: str) -> None:
        await self.handoff.board.one(await self.person(), run)
        self.redirect(f"{self.handoff.context.prefix}new?{urlencode({'clone': run})}")


class One(HandoffPage):
    """One run."""

    async def get(self, run: str) -> None:
        board, now = self.handoff.board, self.handoff.core.now()
        seen = await board.one(await self.person(), run, admin=self.is_admin)
        problem, files, log = "", {}, ""
        try:
            log = await board.log(seen)
            files = await board.files(seen.record)
        except StoreError as error:
            problem = refusal(error).message
        view = view_of(seen, now, files=files, log=log)
        mine = seen.record.user == self.user
        self.show(
            "run.html",
            run=view,
            runs=await self._runs_of(seen) if view.is_schedule else [],
            mine=mine,
            key=secrets.token_hex(16),
            problem=problem,
        )

    async def _runs_of(self, schedule: Seen) -> list[Row]:
        """Give the runs that a schedule has made, to its owner."""
        if schedule.record.user != self.user:
            return []
        found, _ = await self.found()
        own = [one for one in found if base_id(one.record.id) == schedule.record.id != one.record.id]
        return [row_of(one, self.handoff.core.now()) for one in own]

    async def post(self, run: str) -> None:
        """Carry out what one of the buttons says."""
        person, actions = await self.person(), self.handoff.actions
        match self.get_body_argument("do", ""):
            case "cancel":
                await actions.cancel(person, run, admin=self.is_admin)
            case "retry":
                again = await actions.retry(person, run, key=self.get_body_argument("key", "") or None)
                run = again.record.id
            case "remove":
                await self.handoff.remover.run(person, run)
                self.redirect(self.handoff.context.prefix, status=HTTPStatus.SEE_OTHER)
                return
            case "pause" | "resume" as word:
                await actions.pause(person, run, paused=word == "pause")
            case _:
                raise web.HTTPError(HTTPStatus.BAD_REQUEST, "no such button")
        self.redirect(f"{self.handoff.context.prefix}runs/{run}", status=HTTPStatus.SEE_OTHER)


PAGES: tuple[tuple[str, type[HandoffPage], dict[str, Any]], ...] = (
    ("", Mine, {}),
    ("all", Everyones, {}),
    ("new", New, {}),
    (r"runs/([a-z0-9-]{1,63})", One, {}),
    (r"runs/([a-z0-9-]{1,63})/clone", Clone, {}),
)
