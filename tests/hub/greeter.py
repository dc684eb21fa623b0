"""A service that does nothing but greet: what all services share, as a process of a real hub."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from hub_ext.rights import Rights, Scope
from services.base import Api, Loop, Page, Service, ServiceSettings, main

RIGHTS = Rights(
    name="greeter",
    scopes=(Scope(name="list:users", why="counts them"), Scope(name="read:servers", why="counts them")),
    opened_by=("user",),
)


class Settings(ServiceSettings):
    greeting: str
    catalog: Path


class Home(Page):
    """Shows who is there; its form greets."""

    def get(self) -> None:
        self.show("error.html", status=self.service.settings.greeting, message=f"for {self.user}")

    def post(self) -> None:
        self.finish({"greeted": self.user})


class Count(Api):
    """Says what the periodic work found."""

    def get(self) -> None:
        self.finish({"by": self.model["name"], "users": self.service.users})


class Greeter(Service[Settings]):
    """Greets."""

    settings_type = Settings
    title = "Greeter"
    users: int | None = None

    def loops(self) -> list[Loop]:
        return [Loop("count", self.count, every=timedelta(seconds=10))]

    async def count(self) -> None:
        self.users = len(await self.hub.users())

    def handlers(self) -> list:
        return [("", Home, {}), ("api/count", Count, {})]


if __name__ == "__main__":
    sys.exit(main(Greeter))
