"""Who asks: groups and servers as the hub knows them at this moment, and the image of a running server.

Shell: talks to the hub and the Kubernetes API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from hub_ext.catalog.model import Catalog
from hub_ext.errors import HubError, NameRuleError
from hub_ext.names import (
    ANNOTATION_SERVER,
    ANNOTATION_USER,
    LABEL_USER,
    ImageReference,
    label_value,
    parse_image,
)
from hub_ext.selection import Refusal, select
from hub_ext.selection_access import Person
from services.hub import Hub, Server
from services.kube import Kube, api_path

from .plan import ServerImage
from .verdicts import RefusalReason, RunRefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A user, and what runs for them now."""

    person: Person
    servers: Mapping[str, Server]

    @property
    def profiles(self) -> dict[str, str]:
        """Profile of each server, as it was asked for."""
        return {name: str(server.options.get("profile", "")) for name, server in self.servers.items()}


async def ask_hub(hub: Hub, name: str) -> Asker:
    """Read a user afresh: access is judged by the groups of this moment, not of the sign-in.

    Raises
    ------
    RunRefusedError
        The hub does not know the user, or does not answer.
    """
    try:
        user = await hub.user(name)
    except HubError as error:
        raise RunRefusedError(
            RefusalReason.HUB_UNAVAILABLE,
            "The hub does not answer at the moment.",
            help="Try again in a minute.",
        ) from error
    if user is None:
        raise RunRefusedError(RefusalReason.GROUP_REQUIRED, "The hub does not know you any more.")
    # Not known is no membership: nothing is opened by what cannot be seen.
    groups = user.groups or frozenset()
    return Asker(person=Person(name=user.name, groups=groups), servers=user.servers)


async def server_image(
    asker: Asker, name: str | None, catalog: Catalog, *, today: date, kube: Kube, namespaces: tuple[str, ...]
) -> ServerImage | None:
    """Find the image that a user's server runs, by digest; None if there is no such server.

    The catalog says it where it pins images; otherwise the kubelet does.
    """
    server = asker.servers.get(name) if name is not None else None
    if server is None:
        return None
    chosen = select(catalog, asker.person, dict(server.options), today=today)
    secrets: tuple[str, ...] = ()
    if not isinstance(chosen, Refusal):
        secrets = chosen.workspace.image.pull_secrets
        if chosen.workspace.reference.digest:
            return ServerImage(reference=chosen.workspace.reference, pull_secrets=secrets)
    reference = await _running_image(kube, namespaces, user=asker.person.name, server=server.name)
    return ServerImage(reference=reference, pull_secrets=secrets) if reference else None


async def _running_image(
    kube: Kube, namespaces: tuple[str, ...], *, user: str, server: str
) -> ImageReference | None:
    for namespace in namespaces:
        pods = await kube.list(
            api_path("v1", "pods", namespace=namespace), labelSelector=f"{LABEL_USER}={label_value(user)}"
        )
        for pod in pods:
            notes = pod["metadata"].get("annotations") or {}
            if notes.get(ANNOTATION_USER) == user and notes.get(ANNOTATION_SERVER, "") == server:
                return image_of(pod)
    return None


def image_of(pod: Mapping[str, Any]) -> ImageReference | None:
    """Read the image of a pod's first container with the digest that was pulled; None if it is not known."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    for status in statuses:
        text = str(status.get("imageID") or "").removeprefix("docker-pullable://")
        try:
            found = parse_image(text)
        except NameRuleError:
            continue
        if found.digest and found.repository:
            return found
    return None
