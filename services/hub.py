"""JupyterHub's REST interface, as services ask it: users with their servers, stops, and the hub itself.

Foreign exceptions end here: whatever goes wrong is a `HubError`. What the token may not see is None.

Shell: talks to the hub.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote

import httpx

from hub_ext.errors import HubError

from .hub_parts import Server, State, Stop, User, read_user
from .retries import persistently

__all__ = ["Hub", "Server", "State", "Stop", "User"]

PAGE: Final = 200
"""Users per answer: the largest number that a hub gives as it comes."""
TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)
"""Seconds. A hub answers a stop after its `slow_stop_timeout`, 10 seconds, at the latest."""
_PAGES: Final = {"Accept": "application/jupyterhub-pagination+json"}


class Hub:
    """A client of one hub. Use it in ``async with``, or call `close`."""

    def __init__(self, url: str, token: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Make a client.

        Parameters
        ----------
        url
            Of the API, such as ``http://hub:8081/hub/api``.
        transport
            Takes the place of the network.
        """
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/",
            headers={"Authorization": f"token {token}"},
            timeout=TIMEOUT,
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def users(
        self, *, state: State | None = None, lost: list[HubError] | None = None
    ) -> tuple[User, ...]:
        """List users, each once; all pages are read before any user is given.

        A hub counts pages from the start of what matches at that moment: acting on one page would move the
        next. Needs `list:users`; times need `read:users:activity`, servers `read:servers`.

        Parameters
        ----------
        lost
            Takes what is wrong with single users and pages, which are then left out; without it, the first
            of them is raised. The first page, and two in a row, are never single ones.
        """
        query = {"state": state.value} if state else {}
        found: dict[str, User] = {}
        async for item in self._pages("users", query, lost):
            try:
                user = read_user(item)
            except HubError as error:
                if lost is None:
                    raise
                lost.append(error)
            else:
                found[user.name] = user
        return tuple(found.values())

    async def user(self, name: str) -> User | None:
        """Read one user; None if there is none of that name, or none that the token may see."""
        try:
            return read_user(await self._ask(f"users/{_escaped(name)}"))
        except HubError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def server(self, user: str, name: str = "") -> Server | None:
        """Read one server as it is at this moment; None if it does not run."""
        found = await self.user(user)
        return found.server(name) if found else None

    async def version(self) -> str:
        """Give the hub's version, which it tells anyone."""
        body = await self._ask("")
        version = body.get("version") if isinstance(body, dict) else None
        if not isinstance(version, str):
            raise HubError("no answer of a JupyterHub: it has no version; is this the address of the hub?")
        return version

    async def about(self) -> Mapping[str, Any]:
        """Give what the hub says of its parts, such as `spawner` with its `class`. Needs `read:hub`."""
        return self._mapping("info", await self._ask("info"))

    async def services(self) -> Mapping[str, Mapping[str, Any]]:
        """List services by name. Needs `list:services`; their `roles` need `read:roles:services`."""
        return self._mapping("services", await self._ask("services"))

    @staticmethod
    def _mapping(path: str, body: Any) -> Mapping[str, Any]:
        if not isinstance(body, dict):
            raise HubError(f"{path}: not an answer of a JupyterHub")
        return body

    async def stop_server(self, user: str, name: str = "") -> Stop:
        """Stop a server and keep all that belongs to it. Needs `delete:servers`.

        Stopping one that does not run is no error.
        """
        path = f"servers/{_escaped(name)}" if name else "server"
        response = await self._send("DELETE", f"users/{_escaped(user)}/{path}")
        match response.status_code:
            case HTTPStatus.NO_CONTENT:
                return Stop.STOPPED
            case HTTPStatus.ACCEPTED:
                return Stop.STOPPING
            case HTTPStatus.NOT_FOUND:
                return Stop.GONE
            case _:
                raise _refused(response)

    async def _pages(
        self, path: str, query: Mapping[str, str], lost: list[HubError] | None
    ) -> AsyncIterator[Any]:
        """Give the items of all pages. The next page is asked for by number, not by the URL in the answer."""
        offset: int | None = 0
        beyond: int | None = None
        """Where the next page begins if this one is lost; None where it must not be."""
        while offset is not None:
            try:
                body = await self._page(path, {**query, "offset": str(offset), "limit": str(PAGE)})
            except HubError as error:
                if lost is None or beyond is None:
                    raise
                lost.append(error)
                offset, beyond = beyond, None
                continue
            for item in body["items"]:
                yield item
            following = _next_offset(path, body, offset)
            beyond = None if following is None else 2 * following - offset
            offset = following

    async def _page(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        body = await self._ask(path, query)
        if not isinstance(body, dict) or not isinstance(body.get("items"), list):
            raise HubError(f"{path}: not an answer in pages; is this a JupyterHub of 5.4 or newer?")
        return body

    async def _ask(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Ask a question and give the JSON of its answer."""

        async def ask() -> Any:
            response = await self._send("GET", path, query)
            if not response.is_success:
                raise _refused(response)
            try:
                return response.json()
            except ValueError as error:
                raise HubError(f"{path}: the answer is no JSON", status=response.status_code) from error

        return await persistently(ask)

    async def _send(self, method: str, path: str, query: Mapping[str, str] | None = None) -> httpx.Response:
        try:
            return await self._client.request(method, path, params=query, headers=_PAGES)
        except httpx.HTTPError as error:
            raise HubError(f"{method} {path}: no answer: {error!r}") from error


def _next_offset(path: str, body: Mapping[str, Any], offset: int) -> int | None:
    """Say where the next page begins; None after the last."""
    following = (body.get("_pagination") or {}).get("next")
    try:
        found = int(following["offset"]) if following else None
    except (KeyError, TypeError, ValueError) as error:
        raise HubError(f"{path}: pages that cannot be followed: {error!r}") from error
    if found is not None and found <= offset:
        raise HubError(f"{path}: the page after {offset} begins at {found}")
    return found


def _escaped(name: str) -> str:
    """Write a name as one step of a path; raises `HubError` for what would lead elsewhere."""
    if name in {"", ".", ".."}:
        raise HubError(f"{name!r} is no name of a user or a server")
    return quote(name, safe="")


def _refused(response: httpx.Response) -> HubError:
    """Make the error of an answer that is none; what the hub says about it comes along, cut short."""
    request = response.request
    try:
        said = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        said = response.text
    hint = "; the scopes of the token do not allow it" if response.status_code == HTTPStatus.FORBIDDEN else ""
    what = f"{request.method} {request.url.path}: {said[:200] or response.reason_phrase}{hint}"
    return HubError(what, status=response.status_code)
