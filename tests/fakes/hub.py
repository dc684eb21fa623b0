"""A hub's REST interface in memory: keeps users and servers, and refuses what a real one refuses.

    fake = FakeHub()
    fake.add_user("ada", groups=["nlp"])
    fake.add_server("ada", options={"profile": "full"}, started=…)
    hub = Hub(FakeHub.URL, token=fake.token("list:users", "read:servers"), transport=fake.transport)

What only tests may do ends in `_for_test`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote

import httpx
from jupyterhub.scopes import scope_definitions

PAGE_LIMIT: Final = 200
DEFAULT_LIMIT: Final = 50
_FIELDS: Final = {
    "groups": "read:users:groups",
    "last_activity": "read:users:activity",
    "admin": "read:users",
    "created": "read:users",
    "servers": "read:servers",
}
"""Scope without which a field is left out of a user; all others need `read:users:name`."""


class FakeHub:
    """Users, servers, groups, tokens."""

    URL = "http://hub.example:8081/hub/api"

    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {}
        self.groups: set[str] = set()
        self.requests: list[tuple[str, str]] = []
        """Method and path of all that was asked, in order."""
        self.stopped: list[str] = []
        """Servers that were told to stop, as ``user/name``."""
        self.stops_that_fail = 0
        """How many of the next stops end in an error of the hub."""
        self.slow_to_stop = False
        """Stops are answered before they are over; `finish_stops_for_test` ends them."""
        self.page_limit = PAGE_LIMIT
        self.broken_pages: set[int] = set()
        """Offsets of pages that end in an error of the hub."""
        self.version = "5.5.4"
        self.about: dict[str, Any] = {}
        self.services: dict[str, dict[str, Any]] = {}
        self.public: dict[str, tuple[int, Any]] = {}
        """What stands behind the same proxy, and anyone may see: status and body by path."""
        self._tokens: dict[str, frozenset[str]] = {}
        self._failures: list[int | Exception] = []

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.answer)

    def token(self, *scopes: str) -> str:
        """Make a token with these scopes; what they contain is granted too."""
        made = secrets.token_hex(8)
        self._tokens[made] = frozenset(_expanded(scopes))
        return made

    def add_user(
        self, name: str, *, groups: Iterable[str] = (), admin: bool = False, **fields: Any
    ) -> dict[str, Any]:
        """Add a user; returns its record, which tests may change."""
        self.groups |= set(groups)
        record = {"name": name, "kind": "user", "groups": list(groups), "admin": admin, "servers": {}}
        record |= {"created": "2026-01-01T00:00:00.000000Z", "last_activity": None, **fields}
        self.users[name] = record
        return record

    def add_server(
        self,
        user: str,
        name: str = "",
        *,
        options: Mapping[str, Any] | None = None,
        started: datetime | None = None,
        last_activity: datetime | None = None,
        ready: bool = True,
        pending: str | None = None,
    ) -> dict[str, Any]:
        """Add a server that runs; returns its record, which tests may change."""
        record = {
            "name": name,
            "ready": ready,
            "pending": pending,
            "stopped": False,
            "url": f"/user/{user}/{name}/" if name else f"/user/{user}/",
            "user_options": dict(options or {}),
            "started": _stamp(started),
            "last_activity": _stamp(last_activity),
            "state": {"pod_name": f"jupyter-{user}"},
        }
        self.users[user]["servers"][name] = record
        return record

    def fail_for_test(self, *answers: int | Exception) -> None:
        """Answer the next requests with these statuses, or not at all."""
        self._failures += answers

    def finish_stops_for_test(self) -> None:
        """Let all stops that are under way end."""
        for user in self.users.values():
            user["servers"] = {k: s for k, s in user["servers"].items() if s["pending"] != "stop"}

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        path = request.url.raw_path.decode().partition("?")[0]
        self.requests.append((request.method, path))
        if self._failures:
            failure = self._failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return httpx.Response(failure, json={"status": failure, "message": "as told by the test"})
        if path == "/hub/api/":  # told to anyone
            return httpx.Response(200, json={"version": self.version})
        if path in self.public:
            return httpx.Response(self.public[path][0], json=self.public[path][1])
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        scopes = self._tokens.get(token) if kind == "token" else None
        if scopes is None:
            return _error(403, "Missing or invalid credentials.")
        parts = [unquote(part) for part in path.removeprefix("/hub/api/").split("/")]
        return self._route(request, parts, scopes)

    def _route(self, request: httpx.Request, parts: list[str], scopes: frozenset[str]) -> httpx.Response:
        match request.method, parts:
            case "GET", ["users"]:
                return self._users(request, scopes)
            case "GET", ["users", name]:
                return self._user(name, scopes)
            case "GET", ["info" | "services" as what]:
                return self._told(what, scopes)
            case "DELETE", ["users", user, "server"]:
                return self._stop(user, "", scopes)
            case "DELETE", ["users", user, "servers", name]:
                return self._stop(user, name, scopes)
        return _error(404, "")

    def _users(self, request: httpx.Request, scopes: frozenset[str]) -> httpx.Response:
        if "list:users" not in scopes:
            return _error(403, "Action is not authorized with current scopes")
        state = request.url.params.get("state")
        if state not in {None, "ready", "active", "inactive"}:
            return _error(400, "Unrecognized state filter")
        found = [user for user in self.users.values() if _matches(user, state)]
        return self._page(request, [_shown(user, scopes) for user in found])

    def _user(self, name: str, scopes: frozenset[str]) -> httpx.Response:
        if not {"read:users:name", "read:users", "read:servers"} & scopes:
            return _error(404, "No access to resources or resources not found")
        if name not in self.users:
            return _error(404, "")
        return httpx.Response(200, json=_shown(self.users[name], scopes))

    def _told(self, what: str, scopes: frozenset[str]) -> httpx.Response:
        needed, body = ("read:hub", self.about) if what == "info" else ("list:services", self.services)
        if what == "services" and "read:roles:services" not in scopes:
            body = {
                name: {k: v for k, v in one.items() if k != "roles"} for name, one in self.services.items()
            }
        if needed not in scopes:
            return _error(403, "Action is not authorized with current scopes")
        return httpx.Response(200, json=body)

    def _page(self, request: httpx.Request, found: list[dict[str, Any]]) -> httpx.Response:
        """Give a page, if the client can read pages; else as many as a page may have."""
        paged = "application/jupyterhub-pagination+json" in request.headers.get("Accept", "")
        offset = int(request.url.params.get("offset", 0))
        limit = min(int(request.url.params.get("limit", DEFAULT_LIMIT)), self.page_limit)
        if offset in self.broken_pages:
            return _error(500, "Internal Server Error")
        items = found[offset : offset + limit]
        if not paged:
            return httpx.Response(200, json=items)
        following = None
        if offset + limit < len(found):
            # Behind a proxy this is an address that the asker may not even reach.
            url = f"https://public.example/hub/api/users?offset={offset + limit}&limit={limit}"
            following = {"offset": offset + limit, "limit": limit, "url": url}
        about = {"offset": offset, "limit": limit, "total": len(found), "next": following}
        return httpx.Response(200, json={"items": items, "_pagination": about})

    def _stop(self, user: str, name: str, scopes: frozenset[str]) -> httpx.Response:
        if "delete:servers" not in scopes:
            return _error(403, "Action is not authorized with current scopes")
        server = self.users.get(user, {"servers": {}})["servers"].get(name)
        if user not in self.users or (name and server is None):
            return _error(404, f"{user} has no server named '{name}'")
        if server is None:
            return httpx.Response(204)
        if self.stops_that_fail:
            self.stops_that_fail -= 1
            return _error(500, "Internal Server Error")
        self.stopped.append(f"{user}/{name}")
        if self.slow_to_stop:
            server |= {"pending": "stop", "ready": False}
            return httpx.Response(202)
        del self.users[user]["servers"][name]
        return httpx.Response(204)


def _expanded(scopes: Iterable[str]) -> set[str]:
    """All scopes within these, by the hub's own table."""
    found: set[str] = set()
    waiting = list(scopes)
    while waiting:
        scope = waiting.pop()
        if scope not in scope_definitions:
            raise ValueError(f"JupyterHub has no scope {scope}")
        if scope not in found:
            found.add(scope)
            waiting += scope_definitions[scope].get("subscopes", [])
    return found


def _matches(user: Mapping[str, Any], state: str | None) -> bool:
    servers = user["servers"].values()
    match state:
        case "ready":
            return any(server["ready"] for server in servers)
        case "active":
            return bool(servers)
        case "inactive":
            return not servers
    return True


def _shown(user: Mapping[str, Any], scopes: frozenset[str]) -> dict[str, Any]:
    shown = {"name": user["name"], "kind": "user"}
    shown |= {field: user[field] for field, scope in _FIELDS.items() if scope in scopes}
    if "servers" in shown and "admin:server_state" not in scopes:
        servers = user["servers"].items()
        shown["servers"] = {k: {f: v for f, v in s.items() if f != "state"} for k, s in servers}
    return shown


def _stamp(moment: datetime | None) -> str | None:
    """A time as the hub writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment else None


def _error(status: int, message: str) -> httpx.Response:
    return httpx.Response(status, json={"status": status, "message": message})
