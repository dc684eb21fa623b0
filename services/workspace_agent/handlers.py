"""What the pages of JupyterLab ask of the agent. None of it counts as activity.

Shell: answers HTTP in the Jupyter server.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from pydantic import BaseModel, Field, ValidationError
from tornado import web

from hub_ext.protocol import Document, Line, Message, Passed, Stop, Unsaved, Word

from .agent import Agent
from .culler import CullerError
from .jobs import JobError, prepare_job

PREFIX: Final = "gpu-workspaces"
_AGENT: Final = "gpu_workspaces_agent"

Body = TypeVar("Body", bound=BaseModel)


class PageTells(Message):
    """What a page has unsaved."""

    page: Word
    documents: Annotated[tuple[Document, ...], Field(max_length=256)] = ()
    input_seconds: Passed | None = None
    """Since the user last typed or clicked in the page; None where they did not."""
    closed: bool = False
    """The page is going away."""


class PageSaved(Message):
    """What a page saved because all were asked to."""

    page: Word
    save: Word
    saved: Annotated[tuple[Line, ...], Field(max_length=256)] = ()
    failed: Annotated[tuple[Unsaved, ...], Field(max_length=256)] = ()


class JobWanted(Message):
    """A notebook or script that the user wants to run as a job."""

    path: Line
    """Below the server's root."""


class AgentHandler(APIHandler):
    """Base: asking the agent is no activity."""

    _track_activity = False
    auth_resource = PREFIX

    @property
    def agent(self) -> Agent:
        """The one agent of the server."""
        agent: Agent = self.settings[_AGENT]
        return agent

    def body(self, model: type[Body]) -> Body:
        """The request's body; ends the request with 400 where it is none."""
        try:
            return model.model_validate_json(self.request.body)
        except ValidationError as error:
            raise web.HTTPError(400, reason="The request's body is not as agreed") from error

    def refuse(self, status: int, problem: str) -> None:
        """Answer with a sentence for the user; a status line could not hold all that a sentence can."""
        self.set_status(status)
        self.finish({"message": problem})

    def give_view(self) -> None:
        """Answer with what a page shows."""
        self.finish(self.agent.view())


class SessionHandler(AgentHandler):
    """What a page shows when it opens."""

    @web.authenticated
    @authorized
    def get(self) -> None:
        """The view."""
        self.give_view()


class PageHandler(AgentHandler):
    """A page tells what it has unsaved."""

    @web.authenticated
    @authorized
    def post(self) -> None:
        """Note it."""
        told = self.body(PageTells)
        if told.closed:
            self.agent.page_closes(told.page)
        else:
            self.agent.page_tells(told.page, told.documents, told.input_seconds)
        self.set_status(204)


class SavedHandler(AgentHandler):
    """A page confirms that it saved."""

    @web.authenticated
    @authorized
    def post(self) -> None:
        """Note it."""
        told = self.body(PageSaved)
        self.agent.page_saved(told.page, told.save, told.saved, told.failed)
        self.set_status(204)


class KeepHandler(AgentHandler):
    """The button that keeps the server."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Pass it on."""
        try:
            await self.agent.keep()
        except CullerError as error:
            self.refuse(502, error.problem)
        else:
            self.give_view()


class StopHandler(AgentHandler):
    """The buttons that stop the server."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Pass it on."""
        try:
            await self.agent.end(save=self.body(Stop).save)
        except CullerError as error:
            self.refuse(502, error.problem)
        else:
            self.give_view()


class JobHandler(AgentHandler):
    """The menu entry that runs a file as a job."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Prepare it and say which page goes on."""
        path = self.body(JobWanted).path
        root = getattr(self.contents_manager, "root_dir", None)
        if root is None:
            self.refuse(409, "This server's files are not in a folder of its own")
            return
        try:
            url = await prepare_job(str(root), path)
        except JobError as error:
            self.refuse(409, error.problem)
        else:
            self.finish({"url": url})


def routes(base_url: str) -> list[tuple[str, type[AgentHandler]]]:
    """The handlers by URL."""
    handlers: dict[str, type[AgentHandler]] = {
        "session": SessionHandler,
        "page": PageHandler,
        "saved": SavedHandler,
        "keep": KeepHandler,
        "stop": StopHandler,
        "job": JobHandler,
    }
    return [(f"{base_url.rstrip('/')}/{PREFIX}/{name}", handler) for name, handler in handlers.items()]


def settings(agent: Agent) -> dict[str, Any]:
    """What the handlers need of the server's settings."""
    return {_AGENT: agent}
