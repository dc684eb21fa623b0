"""The spawner: shows the catalog, starts what was chosen from it, and refuses the rest in one clear sentence.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do (more are in `spawner_home`,
`spawner_attempt`, `spawner_cluster` and `spawner_requests`):

- `options_form`, `options_from_form`, `options_from_query`, `apply_user_options`: the documented hooks.
- `load_user_options`: the one place that every start passes, whatever way it came.
- `start_polling`: the last call before the hub saves a server that has started, so that one statement writes
  all that is kept of it.
- `get_pod_manifest`: class-level defaults of traits do not survive the chart's configuration, and many traits
  are run through `str.format`.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

import jupyterhub
from traitlets import Dict, Unicode, Union, default

from .catalog.model import Catalog
from .config import VALUES_KEY, catalog_from, chart_catalog
from .form.answer import WorkspaceList
from .form.entries import Visit, entries_for
from .form.instead import what_fits
from .form.listing import list_workspaces
from .form.page import build_page
from .form.render import render
from .hub_errors import LinkOnly, without_false_alarms
from .patience import Patience
from .quota.demand import asked_by
from .quota.policy import with_fits
from .quota.verdicts import Reason
from .quota.verdicts import Refusal as QuotaRefusal
from .render.pod import apply, build_fragment
from .selection import Refusal, Selection, select
from .selection_access import Person
from .selection_input import PROFILE, options_from_form, options_from_link
from .spawner_home import HomeSpawner
from .spawner_objects import to_object, to_pod

STATE_KEY: Final = "workspace"
"""Where the hub's record of a server keeps what it was started with."""


class _Configured(NamedTuple):
    """Traits as the hub's configuration has them, before an attempt sets its own."""

    pvc_ensure: bool
    start_timeout: int


class WorkspaceSpawner(HomeSpawner):
    """Starts workspaces of a catalog on Kubernetes."""

    catalog = Union(
        [Unicode(), Dict()],
        config=True,
        help=f"""
        The catalog: path of a file or of a folder of files, or the catalog itself.

        Default: `{VALUES_KEY}` in the values of the Zero-to-JupyterHub chart.
        """,
    )

    storage_pvc_ensure: bool  # KubeSpawner's trait

    accepted: Mapping[str, Any]
    """Options that were started last; kept across stops and restarts of the hub."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.accepted = {}
        super().__init__(*args, **kwargs)
        if isinstance(self.log, logging.Logger):
            for logger in (self.log, logging.getLogger("tornado.application")):
                logger.addFilter(without_false_alarms)
            logging.getLogger("hub_ext").parent = self.log  # as the hub does with tornado's
        if self.profile_list:
            self.log.warning("profile_list is not used: the catalog says what is offered")
        self._configured = _Configured(self.storage_pvc_ensure, self.start_timeout)
        self._link: Mapping[str, Any] | None = None
        self._refused_form: tuple[WorkspaceSpawner, Mapping[str, Any]] | None = None
        self._shown_for: object = None
        self._verdict: Selection | Refusal | None = None

    @default("catalog")
    def _default_catalog(self) -> Mapping[str, Any]:
        return chart_catalog()

    @cached_property
    def _catalog(self) -> Catalog:
        return catalog_from(self.catalog)

    @property
    def _person(self) -> Person:
        """The user with the groups of this moment."""
        return Person(name=self.user.name, groups=frozenset(group.name for group in self.user.groups))

    def _judge(self) -> Selection | Refusal:
        return select(self._catalog, self._person, self.user_options, today=_today(), last=self.accepted)

    @default("options_form")
    def _default_options_form(self) -> Callable[[WorkspaceSpawner], Awaitable[str]]:
        return WorkspaceSpawner._show_page

    async def _show_page(self) -> str:
        """Render the page for this server, or again for the one whose form was refused a moment ago.

        After a refused form the hub asks the default server for the page, whichever server it was for
        (`SpawnHandler._post`). A page that is visited has a handler that was not seen before.
        """
        visited = self.handler is not None and self.handler is not self._shown_for
        refused, self._refused_form, self._shown_for = self._refused_form, None, self.handler
        if refused is None or visited:
            link, self._link = self._link, None
            return await self._render_page(link=link)
        return await refused[0]._render_page(refused=refused[1])

    async def _render_page(
        self, *, link: Mapping[str, Any] | None = None, refused: Mapping[str, Any] | None = None
    ) -> str:
        visit = replace(await self._visit(self.name), link=link, refused=refused)
        return render(build_page(self._catalog, visit))

    async def list_workspaces(
        self, server_name: str, options: Mapping[str, Any] | None = None
    ) -> WorkspaceList:
        """Say what the page says, for programs; for a server of another name as if it were a new one.

        `options` are filled in as those of a link are.
        """
        return list_workspaces(self._catalog, replace(await self._visit(server_name), link=options))

    async def _visit(self, server_name: str) -> Visit:
        return Visit(
            person=self._person,
            server_name=server_name,
            today=_today(),
            last=self.accepted if server_name == self.name else {},
            hub_home=bool(self.volume_mounts),
            look=await self._look(server_name),
        )

    @default("options_from_form")
    def _default_options_from_form(self) -> Callable[[Mapping[str, Sequence[Any]]], dict[str, Any]]:
        return self._read_form

    def _read_form(self, form: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        options = options_from_form(form)
        self.user.spawner._refused_form = (self, options)
        return options

    def options_from_query(self, query: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """Keep the options of a link for the page. A link from another site must never start anything."""
        self._link = options_from_link(query, prefixed=jupyterhub.version_info < (6,))
        raise LinkOnly

    @default("apply_user_options")
    def _default_apply_user_options(self) -> Callable[[WorkspaceSpawner, Mapping[str, Any]], None]:
        return lambda *_: None  # `load_user_options` reads them; without a hook the hub warns at each start

    def start(self) -> Any:
        """Judge the choice before the hub reads how long it may take; the start itself refuses."""
        self._verdict = verdict = self._judge()
        limit = verdict.workspace.session.start_timeout if isinstance(verdict, Selection) else None
        own = limit.total_seconds() if limit else self._configured.start_timeout
        self._patience = Patience(own=own, queue=self.queue_timeout)
        return super().start()

    def start_polling(self) -> Any:
        """Keep the options as they were judged; the hub saves the state in the same row next."""
        if self.accepted:
            self.orm_spawner.user_options = dict(self.accepted)
        return super().start_polling()

    async def load_user_options(self) -> None:
        """Turn the options into a workspace, or refuse. Nothing of an earlier attempt is left."""
        self.selection = None
        verdict, self._verdict = self._verdict or self._judge(), None
        if isinstance(verdict, Refusal):
            error = self._refuse(verdict)
            # The hub saved the options before anyone judged them; they must not become the next default.
            self.user_options = self.orm_spawner.user_options = dict(self.accepted)
            raise error
        if verdict.ignored:
            self.log.warning("Ignored %d unknown options of %s", len(verdict.ignored), self._log_name)
        self.selection = verdict
        self.accepted = self.user_options = verdict.options
        await self._place(verdict)
        await self._reserve(verdict)

    @property
    def _asked_profile(self) -> str:
        found = (profile.name for profile in self._catalog.profiles)
        return next((name for name in found if name == self.user_options.get(PROFILE)), "")

    async def _with_fits(self, refusal: QuotaRefusal, selection: Selection) -> QuotaRefusal:
        workspace, weights = selection.workspace, self._cluster.rules.weights
        visit = replace(await self._visit(self.name), other_answers=False)
        found = entries_for(self._catalog, visit).entries
        short = refusal.shortages if refusal.reason is Reason.NAMESPACE_QUOTA else ()
        asked = asked_by(workspace, weights)
        fits = what_fits(found, profile=workspace.profile.name, asked=asked, short=short)
        return with_fits(refusal, fits)

    async def _place(self, selection: Selection) -> None:
        """Set where the pod and the home are: traits that every attempt sets anew."""
        namespace = self._namespace_of(selection.team)
        if namespace != self.namespace:
            self.namespace, self._pvc_exists = namespace, False
        home = selection.workspace.storage.home
        self.storage_pvc_ensure = self._configured.pvc_ensure if home is None else home.claim is None
        if home is not None:
            await self._share_home()
        if self.storage_pvc_ensure:
            await self._recall_home(self.name if home is None else "")

    @property
    def workspace_title(self) -> str:
        """What users call what is started; empty before anything is. The page of the wait shows it."""
        return self.selection.workspace.profile.display_name if self.selection else ""

    def get_state(self) -> dict[str, Any]:
        """Add what the server was started with."""
        state: dict[str, Any] = super().get_state()
        return state | {STATE_KEY: dict(self.accepted)} if self.accepted else state

    def load_state(self, state: Mapping[str, Any]) -> None:
        super().load_state(state)
        self.accepted = state.get(STATE_KEY) or {}

    async def get_pod_manifest(self) -> Any:
        """Put the workspace onto the pod that KubeSpawner makes from the hub's configuration.

        It is a `V1Pod` where a hook of the admin's expects one; else a plain object in the API's spelling.
        """
        if self.selection is None:
            raise RuntimeError("load_user_options has not chosen a workspace")
        if self.storage_pvc_ensure:
            await self._check_owner_of_home()
        client = self.api.api_client
        pod = to_object(client, await super().get_pod_manifest())
        fragment = build_fragment(self._catalog, self.selection.workspace, self._facts)
        made = apply(pod, fragment)
        return to_pod(client, made) if self.modify_pod_hook else made


def _today() -> date:
    return datetime.now(UTC).date()
