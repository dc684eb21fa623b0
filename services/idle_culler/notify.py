"""Sending notices, by Apprise: e-mail, webhooks, chats.

What cannot be sent is logged and holds nothing up. Addresses carry secrets and are never logged.

Shell: sends messages.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from apprise import Apprise

from .notices import Notice

log = logging.getLogger(__name__)
logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # it writes addresses that it cannot read

TIMEOUT: Final = 30.0
"""Seconds."""
USER: Final = "{user}"
_SEVERAL: Final = re.compile(r"[\s,;:<>()\[\]\"\\|\x00-\x1f\x7f]")
"""What tells one address from the next, however it is escaped: names are what users chose."""


class Notifier:
    """Sends to the user's own addresses, and to those of admins."""

    def __init__(self, users: Iterable[str] = (), admins: Iterable[str] = ()) -> None:
        self._users, self._admins = tuple(users), tuple(admins)
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, notice: Notice) -> None:
        """Send a notice, without waiting for it."""
        if self._leads_elsewhere(notice.user):
            log.warning("notice not sent, the name could be read as other addresses: user=%r", notice.user)
            return
        urls = [self._address(url, notice.user) for url in self._users] if notice.user else [*self._admins]
        if urls:
            task = asyncio.create_task(self._send(urls, notice))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _leads_elsewhere(self, user: str) -> bool:
        names_place = any(f"{USER}@" in url for url in self._users)
        return bool(_SEVERAL.search(user)) or ("@" in user and names_place)

    @staticmethod
    def _address(url: str, user: str) -> str:
        return url.replace(USER, quote(user, safe=""))

    async def _send(self, urls: list[str], notice: Notice) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                sent = await _deliver(urls, notice)
        except Exception:  # noqa: BLE001 - of any of a hundred plugins; what they say may hold the address
            sent = False
        if not sent:
            log.warning("notice not sent: user=%r title=%s", notice.user, notice.title)

    async def close(self) -> None:
        """Wait for what is under way."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=TIMEOUT)


def is_address(url: str) -> bool:
    """Say whether an address is of a kind that is known and whole, whoever the user is."""
    return Apprise.instantiate(url.replace(USER, "user")) is not None


async def _deliver(urls: list[str], notice: Notice) -> bool:
    sender = Apprise()
    known = [sender.add(url) for url in urls]
    return bool(await sender.async_notify(title=notice.title, body=notice.body)) and all(known)
