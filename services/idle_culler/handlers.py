"""The idle-culler's API and pages.

Shell: speaks HTTP.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel, ConfigDict
from tornado.web import HTTPError, RequestHandler

from hub_ext.protocol import MAX_BODY, Act, Answer, Keep, Report, Saved, Stop
from hub_ext.protocol import Limit as LimitWord

from ..base import ANYONE, Api, Page
from ..turns import in_turns
from .answers import build_answer, unseen
from .callers import Callers
from .limits import GpuKind, gpu_kind
from .observe import Key
from .reasons import Reason, sentence
from .view import Card, Shown, build_card

if TYPE_CHECKING:
    from .culler import Culler


ROWS: Final = 200
"""Servers that a page shows at once: what somebody looks for among more of them is found by a word."""


class _Knows:
    """What both kinds of handlers need: the culler, and whether an admin asks."""

    settings: dict[str, Any]
    model: Any

    @property
    def culler(self) -> Culler:
        return cast("Culler", self.settings["service"].culler)

    @property
    def is_admin(self) -> bool:
        return bool(self.model.get("admin"))

    def need_admin(self) -> None:
        if not self.is_admin:
            raise HTTPError(HTTPStatus.FORBIDDEN, "this is for administrators")

    def answer_about(self, key: Key) -> Answer:
        """Say how things stand with a server."""
        culler = self.culler
        if key not in culler.book.judged:
            return unseen(acts=culler.book.acts)
        return build_answer(culler.outlook(key), culler.book.clock())

    def cards(self, keys: list[Key]) -> list[Card]:
        return [build_card(self._shown(key)) for key in keys]

    def _shown(self, key: Key) -> Shown:
        judged = self.culler.book.judged[key]
        verdict, pod = judged.verdict, judged.facts.pod
        limit = judged.limits.session if verdict.limit is LimitWord.SESSION else judged.limits.idle
        return Shown(
            user=key[0],
            server=key[1],
            profile=pod.profile if pod else "",
            gpus=_KINDS[gpu_kind(pod)],
            answer=self.answer_about(key),
            whole_seconds=limit if verdict.limit else None,
            unsaved=self.culler.book.inbox.unsaved(key),
        )


_KINDS = {
    GpuKind.NONE: "",
    GpuKind.SHARED: "a share of a GPU",
    GpuKind.MIG: "a slice of a GPU",
    GpuKind.FULL: "one GPU",
    GpuKind.SEVERAL: "several GPUs",
}


class _Call(_Knows, Api):
    """What workspaces and pages call; each is answered with how things stand then."""

    def own(self, server: str) -> Key:
        """Give the key of a server of the one who asks."""
        key = self.user, server
        if key not in self.culler.book.judged:
            raise HTTPError(HTTPStatus.NOT_FOUND, "you have no such server, or it has only just started")
        return key

    def tell(self, key: Key) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(self.answer_about(key).model_dump_json(by_alias=True))


class TakeReport(_Call):
    """A workspace says what it sees in itself."""

    scopes = ANYONE

    async def prepare(self) -> None:
        """Ask the hub whose token this is, once an hour: workspaces report twice a minute.

        A token that was taken back meanwhile still reports; a report can only put off a stop, up to the caps.
        """
        known: Callers = self.settings["service"].callers
        token = self.hub_auth.get_token(self, in_cookie=False) or ""
        found = known.find(token) if token else None
        if found is not None:
            self.model = found
            return
        await super().prepare()
        if token:
            known.add(token, self.model)

    def post(self) -> None:
        if len(self.request.body) > MAX_BODY:
            raise HTTPError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a report has at most %d bytes", MAX_BODY)
        report = self.read(Report)
        self.culler.hear(self.user, report)
        self.tell((self.user, report.server))


class KeepServer(_Call):
    """The user keeps a server."""

    async def post(self) -> None:
        key = self.own(self.read(Keep).server)
        refusal = await self.culler.keep(key)
        if refusal:
            raise HTTPError(HTTPStatus.CONFLICT, "%s", refusal)
        self.tell(key)


class StopServer(_Call):
    """The user stops a server."""

    async def post(self) -> None:
        wish = self.read(Stop)
        key = self.own(wish.server)
        await self.culler.ask_stop(key, by="user", save=wish.save)
        self.tell(key)


class TakeSaved(_Call):
    """A workspace says what became of a save."""

    async def post(self) -> None:
        said = self.read(Saved)
        key = self.own(said.server)
        await self.culler.saved(key, said.save, tuple(one.path for one in said.failed))
        self.tell(key)


class ListServers(_Call):
    """How things stand with one's own servers; with all of them for an admin who asks so."""

    async def get(self) -> None:
        culler = self.culler
        if self.get_query_argument("all", ""):
            self.need_admin()
            keys = list(culler.book.judged)
        else:
            keys = list(culler.book.keys_of(self.user))
        answers = []
        async for user, server in in_turns(sorted(keys)):
            answer = self.answer_about((user, server)).model_dump(mode="json")
            answers.append({"user": user, "server": server, **answer})
        self.finish({"servers": answers, "blocked": culler.gate.reason})


class AdminStop(BaseModel):
    """An admin stops somebody's server."""

    model_config = ConfigDict(extra="forbid")
    user: str
    server: str = ""


class StopAnyServer(_Call):
    """An admin stops a server, after a save where a page is open."""

    async def post(self) -> None:
        self.need_admin()
        wish = self.read(AdminStop)
        key = wish.user, wish.server
        if key not in self.culler.book.judged:
            raise HTTPError(HTTPStatus.NOT_FOUND, "there is no such server")
        await self.culler.ask_stop(key, by="admin", save=True)
        self.tell(key)


class Release(_Call):
    """An admin lets stops through that the breaker holds."""

    def post(self) -> None:
        self.need_admin()
        self.culler.release(by=self.user)
        self.finish({"blocked": None})


class OwnPage(_Knows, Page):
    """Why am I (not) being stopped?"""

    def get(self) -> None:
        culler = self.culler
        self.show(
            "own.html",
            cards=self.cards(sorted(culler.book.keys_of(self.user))),
            notice="" if culler.book.acts else sentence(Reason.OBSERVE_ONLY),
            is_admin=self.is_admin,
            acts_of=Act,
        )


class AllPage(_Knows, Page):
    """All servers, for admins."""

    def get(self) -> None:
        self.need_admin()
        culler, word = self.culler, self.get_query_argument("find", "")
        blocked, found = culler.gate.reason, culler.book.find(word)
        self.show(
            "all.html",
            cards=self.cards(found[:ROWS]),
            found=len(found),
            running=len(culler.book.judged),
            find=word,
            acts=culler.book.acts,
            blocked=sentence(blocked) if blocked else "",
            can_release=blocked in {Reason.TOO_MANY, Reason.TOO_LITTLE_KNOWN},
            problems=dict(culler.book.observer.view.problems),
        )


ROUTES: Final[tuple[tuple[str, type[RequestHandler], dict[str, Any]], ...]] = (
    ("api/report", TakeReport, {}),
    ("api/keep", KeepServer, {}),
    ("api/stop", StopServer, {}),
    ("api/saved", TakeSaved, {}),
    ("api/servers", ListServers, {}),
    ("api/admin/stop", StopAnyServer, {}),
    ("api/admin/release", Release, {}),
    ("", OwnPage, {}),
    ("all", AllPage, {}),
)
