"""`GET /hub/api/users/<user>/workspaces`: what a user may start now, with the facts of the spawn page.

It runs in the hub's process because the one watch of the cluster and the one ledger of reservations are
there: a service beside the hub would have to ask for the same again, and could tell another number than the
page does.

Shell: a handler of the hub.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import jupyterhub
from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from tornado import web

from ..selection_input import LINK_PREFIX, options_from_link
from ..spawner import WorkspaceSpawner

_MAY_ASK: Final = ("read:servers",) if jupyterhub.version_info < (6,) else ("read:servers", "start:servers")
_LONGEST_NAME: Final = 255


class WorkspacesHandler(APIHandler):  # type: ignore[misc]  # the hub has no types
    """Answers with `hub_ext.form.answer.WorkspaceList`."""

    async def get(self, user_name: str) -> None:
        """Answer for the server that `?server=` names, else for the default one, with `?opt-…=` filled in."""
        await self._answer(user_name=user_name, server_name=self.get_query_argument("server", ""))

    @needs_scope(*_MAY_ASK)  # type: ignore[untyped-decorator]
    async def _answer(self, *, user_name: str, server_name: str) -> None:
        if len(server_name) > _LONGEST_NAME or not server_name.isprintable():
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "This is no name of a server.")
        if server_name and not self.allow_named_servers:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "Named servers are not enabled.")
        user = self.find_user(user_name)
        if user is None:
            raise web.HTTPError(HTTPStatus.NOT_FOUND)
        # A name that is not there yet is that of a server to come; asking must not create it.
        known = server_name in user.orm_spawners
        spawner = user.spawners[server_name if known else ""]
        if not isinstance(spawner, WorkspaceSpawner):
            raise web.HTTPError(HTTPStatus.NOT_FOUND, "This hub has no workspaces.")
        names = (name for name in self.request.query_arguments if name.startswith(LINK_PREFIX))
        options = options_from_link({name: self.get_query_arguments(name) for name in names}, prefixed=True)
        found = await spawner.list_workspaces(server_name, options or None)
        self.set_header("Cache-Control", "no-store")
        self.write(found.model_dump_json())
