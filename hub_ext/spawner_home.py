"""Homes: the claim that is a user's in all servers, whatever an older hub called it, and nobody else's.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `get_pvc_manifest`: many traits are run through `str.format`.
- `delete_forever`: a home outlives the named servers that use it, and a name that is not remembered is found
  by whose it is.
- `_start`: only after the first start a home is bound to a volume, and with that perhaps to a zone.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Final

from kubernetes_asyncio.client.rest import ApiException
from tornado import web

from .catalog.compose import Workspace
from .cluster.zones import zones_of_volume
from .homes import Home, read_home
from .names import HUB_SERVER
from .render.pod import UserFacts, build_claim
from .selection import Refusal
from .spawner_attempt import AttemptSpawner
from .spawner_objects import (
    homes_of,
    homes_selector,
    is_of_server,
    is_somebody_else_s,
    put_on_claim,
    to_object,
)
from .spawner_requests import UNANSWERED

HOME_KEY: Final = "home"
"""Where the hub's record of a server keeps what is known of its home."""

_PATIENCE: Final = 2.0
"""Seconds that a start may be held up by looking where its home is."""

_NOT_YOURS: Final = Refusal(
    reason="home-not-yours",
    text="The volume of your home belongs to somebody else. Please tell the administrator.",
    status=HTTPStatus.FORBIDDEN,
)

_UNCLEAR: Final = Refusal(
    reason="home-unclear",
    text="Several volumes may be your home. Please tell the administrator.",
    status=HTTPStatus.CONFLICT,
)


class HomeSpawner(AttemptSpawner):
    """Knows which claim is the user's home."""

    pvc_name: str  # KubeSpawner's
    storage_pvc_ensure: bool
    _pvc_exists: bool

    home: Home | None = None
    """What is known of the home that was used last."""

    _absent: tuple[str, str] | None = None
    """Namespace and name of a claim that was just seen not to be there: the trial asks no second time."""

    _may_read_volumes: ClassVar[bool] = True
    """Whether the API server has let the hub look; asked again when the hub is started anew."""

    @property
    def _facts(self) -> UserFacts:
        team = self.selection.team if self.selection else None
        return UserFacts(name=self.user.name, team=team, server_name=self.name, home_claim=self.pvc_name)

    async def _share_home(self) -> None:
        """Make a named server use the home of the default one."""
        main = self.user.spawner
        if main is self or self._pvc_exists:
            return
        together = main.namespace == self.namespace
        if together and main._state_kubespawner_version == "unknown" and not main._pvc_exists:
            await main._find_legacy_home()
        self.pvc_name, self._pvc_exists = main.pvc_name, together and main._pvc_exists

    async def _find_legacy_home(self) -> None:
        """Use a claim as KubeSpawner 6 named it; a start of the default server does so itself (`_start`)."""
        legacy = self._expand_user_properties(self.pvc_name_template, slug_scheme="escape")
        if legacy != self.pvc_name and await self._claim(self.pvc_name) is None and await self._claim(legacy):
            self.pvc_name, self._pvc_exists = legacy, True

    async def _recall_home(self, server: str) -> None:
        """Use the claim that is there though its name is not remembered, as where the database was lost.

        A new claim beside it would be an empty home. `server` is whose home it is: empty for the user's own.
        """
        self._absent = None
        if self._pvc_exists or await self._claim(self.pvc_name) is not None:
            return
        found = await self._homes(server)
        if len(found) > 1:
            self.log.warning("Several claims may be the home of %s: %s", self._log_name, ", ".join(found))
            raise self._refuse(_UNCLEAR)
        if found:
            self.log.info("Found the home of %s by whose it is: %s", self._log_name, found[0])
            self.pvc_name, self._pvc_exists = found[0], True
        else:
            self._absent = (self.namespace, self.pvc_name)

    async def _homes(self, server: str) -> tuple[str, ...]:
        selector = homes_selector(self.user.name)
        listed = await self._ask(
            partial(self.api.list_namespaced_persistent_volume_claim, self.namespace, label_selector=selector)
        )
        return homes_of(listed.items, user=self.user.name, server=server)

    async def _claim(self, name: str) -> Any | None:
        read = partial(self.api.read_namespaced_persistent_volume_claim, name, self.namespace)
        try:
            return await self._ask(read)
        except ApiException as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def _check_owner_of_home(self) -> None:
        """Refuse a claim that another user's name leads to: names are shortened, and hashes can collide."""
        absent, self._absent = self._absent == (self.namespace, self.pvc_name), None
        claim = None if absent else await self._claim(self.pvc_name)
        if claim is not None and is_somebody_else_s(claim, self.user.name):
            raise self._refuse(_NOT_YOURS)
        if self.home is not None and (claim is None or claim.spec.volume_name != self.home.volume):
            self.home = None  # it was made anew, perhaps elsewhere

    async def _start(self) -> Any:
        try:
            url = await super()._start()
        except web.HTTPError:
            await self._learn_home()
            raise
        await self._learn_home()
        return url

    async def _learn_home(self) -> None:
        """Look once where a home is; without the right to it, or without an answer, that stays unknown.

        A volume that the client cannot read, as one of a newer cluster, must not end a start that went well.
        """
        made = self._attempt is not None and self._attempt.created.is_set()
        known = self.home is not None and self.home.is_at(self.namespace, self.pvc_name)
        if known or not made or not self.storage_pvc_ensure or not HomeSpawner._may_read_volumes:
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                self.home = await self._find_home()
        except (TimeoutError, ValueError, *UNANSWERED) as error:
            self.log.info("It is not known where the home of %s is: %r", self._log_name, error)
        except ApiException as error:
            HomeSpawner._may_read_volumes = error.status != HTTPStatus.FORBIDDEN
            self.log.info("It is not known where the home of %s is: status=%s", self._log_name, error.status)

    async def _find_home(self) -> Home | None:
        claim = await self.api.read_namespaced_persistent_volume_claim(self.pvc_name, self.namespace)
        if not (name := claim.spec.volume_name):
            return None
        volume = to_object(self.api.api_client, await self.api.read_persistent_volume(name))
        zones = tuple(sorted(zones_of_volume(volume)))
        return Home(namespace=self.namespace, claim=self.pvc_name, volume=name, zones=zones)

    def _zones_of_home(self, workspace: Workspace, namespace: str) -> frozenset[str]:
        home = workspace.storage.home
        if home is not None and home.claim is not None:
            return frozenset()
        claim = self.pvc_name if home is None else self.user.spawner.pvc_name
        for spawner in (self, self.user.spawner):
            known = spawner.home
            if known is not None and known.is_at(namespace, claim):
                return frozenset(known.zones)
        return frozenset()

    def get_state(self) -> dict[str, Any]:
        """Add what is known of the home."""
        state: dict[str, Any] = super().get_state()
        return state | {HOME_KEY: self.home.as_dict()} if self.home else state

    def load_state(self, state: Mapping[str, Any]) -> None:
        super().load_state(state)
        self.home = read_home(state.get(HOME_KEY))

    def get_pvc_manifest(self) -> Any:
        """Put the size and class of the profile's home onto the claim that KubeSpawner makes."""
        claim = super().get_pvc_manifest()
        wanted = self.selection and build_claim(self._catalog, self.selection.workspace, self._facts)
        if wanted:
            put_on_claim(claim, wanted)
        if self.pvc_name == self.user.spawner.pvc_name:
            claim.metadata.annotations.pop(HUB_SERVER, None)  # it is not the server's own that makes it first
        return claim

    async def delete_forever(self) -> None:
        """Delete what was the server's own, under whatever name; a home stays as long as its user."""
        if self.delete_pvc and not await self._find_home_to_delete():
            return
        await super().delete_forever()

    async def _find_home_to_delete(self) -> bool:
        """Find the claim by its name, else by whose it is; say whether it is certain."""
        if self.name and self.pvc_name == self.user.spawner.pvc_name:
            return self._kept()
        claim = await self._claim(self.pvc_name)
        if claim is not None:
            certain = not is_somebody_else_s(claim, self.user.name)
            # Two servers may remember one claim, and the default one need not: only the claim knows.
            own = not self.name or is_of_server(claim, self.name)
            return (certain and own) or self._kept()
        found = await self._homes(self.name)
        if len(found) == 1:
            self.pvc_name = found[0]
        elif found:
            self.log.warning("Deleted no home of %s, several may be: %s", self._log_name, ", ".join(found))
        return len(found) == 1

    def _kept(self) -> bool:
        self.log.info("Kept the claim %s: it is not certain to be that of %s", self.pvc_name, self._log_name)
        return False
