"""Ask a running hub about itself and its services, by the address that people use. Nothing is changed.

Shell: talks to the hub and, without a token, to its services.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from http import HTTPStatus
from typing import Final, TypeVar

import httpx

from hub_ext.errors import HubError

from ..hub import Hub, State
from .scene import HubFacts, ServerKey

TIMEOUT: Final = 10.0
"""Seconds."""

_Answer = TypeVar("_Answer")


async def ask_hub(
    url: str, token: str, services: Iterable[str], *, transport: httpx.AsyncBaseTransport | None = None
) -> tuple[HubFacts, dict[str, str]]:
    """Ask the hub; gives with it what the token may not see, and why.

    Parameters
    ----------
    url
        Of the hub for people, such as ``https://hub.example.com/``; with its base URL, if it has one.

    Raises
    ------
    HubError
        The hub does not answer, or it is none.
    """
    root = _root(url)
    denied: dict[str, str] = {}
    async with Hub(f"{root}/hub/api", token, transport=transport) as hub:
        version = await hub.version()
        about = await _if_allowed(hub.about(), "hub_spawner", denied)
        known = await _if_allowed(hub.services(), "hub_services", denied)
    if known is not None and not all("roles" in one for one in known.values()):
        known, denied["hub_services"] = None, "roles are not told: the token lacks read:roles:services"
    async with httpx.AsyncClient(timeout=TIMEOUT, transport=transport, trust_env=False) as client:
        health = {name: await _health(client, f"{root}/services/{name}/health") for name in services}
    spawner = str(((about or {}).get("spawner") or {}).get("class") or "") or None
    return HubFacts(version=version, spawner=spawner, services=known, health=health), denied


async def ask_running(
    url: str, token: str, denied: dict[str, str], *, transport: httpx.AsyncBaseTransport | None = None
) -> frozenset[ServerKey] | None:
    """List the servers that run or are about to; None, with the reason in `denied`, if that is not told.

    Raises
    ------
    HubError
        The hub does not answer.
    """
    async with Hub(f"{_root(url)}/hub/api", token, transport=transport) as hub:
        users = await _if_allowed(hub.users(state=State.ACTIVE), "hub_running", denied)
    if users and not any(user.servers for user in users):
        denied["hub_running"] = "servers are not told: the token lacks read:servers"
        return None
    return None if users is None else frozenset((user.name, name) for user in users for name in user.servers)


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/hub")


async def _if_allowed(asking: Awaitable[_Answer], what: str, denied: dict[str, str]) -> _Answer | None:
    try:
        return await asking
    except HubError as error:
        if error.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED}:
            raise
        denied[what] = str(error)
        return None


async def _health(client: httpx.AsyncClient, url: str) -> str:
    """Say what is wrong with a service, as its own page for anyone says it; empty for nothing."""
    try:
        answer = await client.get(url)
    except httpx.HTTPError as error:
        return f"GET {url}: no answer: {error!r}"
    if answer.status_code != HTTPStatus.OK:
        return f"GET {url}: status {answer.status_code}"
    try:
        loops = answer.json()["loops"]
        failing = sorted(name for name, loop in loops.items() if not loop["ok"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"GET {url}: not what a service of this bundle answers"
    return f"GET {url}: its last pass failed: {', '.join(failing)}; see its log" if failing else ""
