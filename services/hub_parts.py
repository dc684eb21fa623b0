"""What a hub tells of users and their servers, and how it is read.

What the token may not see is None.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from hub_ext.errors import HubError


class State(StrEnum):
    """Which users are listed, by what their servers do."""

    READY = "ready"
    """With a server that is up."""
    ACTIVE = "active"
    """With a server that is up, or in the middle of something."""


class Stop(StrEnum):
    """What came of asking for a stop."""

    STOPPED = "stopped"
    STOPPING = "stopping"
    """Under way: the hub did not wait for the end."""
    GONE = "gone"
    """There is no such user or server any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server as the hub knows it."""

    user: str
    name: str
    """Empty for a user's default server."""
    ready: bool
    pending: str | None
    """What it is in the middle of: ``spawn``, ``stop``, …"""
    started: datetime | None
    last_activity: datetime | None
    """The latest of what the proxy saw and what the server reported; an open page counts, and users can
    forge it."""
    options: Mapping[str, Any]
    """`user_options` of the start: the profile and what was chosen with it."""
    state: Mapping[str, Any] | None
    """What the spawner keeps; None without the scope `admin:server_state`."""
    url: str
    """Path below the hub's host."""

    @property
    def key(self) -> str:
        """The server in the words of the hub: ``user/name``."""
        return f"{self.user}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """One user, with those of their servers that run or are about to."""

    name: str
    admin: bool | None
    groups: frozenset[str] | None
    """None without the scope `read:users:groups`: not known, which is not the same as none."""
    created: datetime | None
    last_activity: datetime | None
    servers: Mapping[str, Server]

    def server(self, name: str = "") -> Server | None:
        """Give one of the servers."""
        return self.servers.get(name)


def read_user(item: Mapping[str, Any]) -> User:
    """Read one user of an answer; raises `HubError` for what is none."""
    try:
        name = item["name"]
        groups = item.get("groups")
        return User(
            name=name,
            admin=item.get("admin"),
            groups=None if groups is None else frozenset(groups),
            created=_time(item.get("created")),
            last_activity=_time(item.get("last_activity")),
            servers={key: _server(name, key, one) for key, one in (item.get("servers") or {}).items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HubError(f"a user that cannot be read: {error!r}") from error


def _server(user: str, name: str, item: Mapping[str, Any]) -> Server:
    return Server(
        user=user,
        name=name,
        ready=bool(item["ready"]),
        pending=item.get("pending") or None,
        started=_time(item.get("started")),
        last_activity=_time(item.get("last_activity")),
        options=item.get("user_options") or {},
        state=item.get("state"),
        url=item.get("url") or "",
    )


def _time(text: str | None) -> datetime | None:
    """Read a time; one without zone is UTC, as a hub's are."""
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
