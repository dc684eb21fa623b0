"""Homes: the claim that is a user's in all servers, whatever an older hub called it, and nobody else's.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `get_pvc_manifest`: many traits are run through `str.format`.
- `delete_forever`: a home outlives the named servers that use it, and an older hub's name for it is found by
  whose it is.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any, Final

from kubernetes_asyncio.client.rest import ApiException

from .render.pod import UserFacts, build_claim
from .selection import Refusal
from .spawner_attempt import AttemptSpawner
from .spawner_objects import HOMES, SERVER_NOTE, homes_of, is_somebody_else_s, put_on_claim

_NOT_YOURS: Final = Refusal(
    reason="home-not-yours",
    text="The volume of your home belongs to somebody else. Please tell the administrator.",
    status=HTTPStatus.FORBIDDEN,
)


class HomeSpawner(AttemptSpawner):
    """Knows which claim is the user's home."""

    pvc_name: str  # KubeSpawner's
    _pvc_exists: bool

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
        claim = await self._claim(self.pvc_name)
        if claim is not None and is_somebody_else_s(claim, self.user.name):
            raise self._refuse(_NOT_YOURS)

    def get_pvc_manifest(self) -> Any:
        """Put the size and class of the profile's home onto the claim that KubeSpawner makes."""
        claim = super().get_pvc_manifest()
        wanted = self.selection and build_claim(self._catalog, self.selection.workspace, self._facts)
        if wanted:
            put_on_claim(claim, wanted)
        if self.pvc_name == self.user.spawner.pvc_name:
            claim.metadata.annotations.pop(
                SERVER_NOTE, None
            )  # it is not the server's own that makes it first
        return claim

    async def delete_forever(self) -> None:
        """Delete what was the server's own, under whatever name; a home stays as long as its user."""
        if self.name and self.pvc_name == self.user.spawner.pvc_name:
            self.log.info("Kept the home of %s: it is not the server's own", self._log_name)
            return
        if self.delete_pvc and not await self._find_home_to_delete():
            return
        await super().delete_forever()

    async def _find_home_to_delete(self) -> bool:
        """Find the claim by its name, else by whose it is; say whether it is certain."""
        claim = await self._claim(self.pvc_name)
        if claim is not None:
            return not is_somebody_else_s(claim, self.user.name)
        listed = await self.api.list_namespaced_persistent_volume_claim(self.namespace, label_selector=HOMES)
        found = homes_of(listed.items, user=self.user.name, server=self.name)
        if len(found) == 1:
            self.pvc_name = found[0]
        elif found:
            self.log.warning("Deleted no home of %s, several may be: %s", self._log_name, ", ".join(found))
        return len(found) == 1
