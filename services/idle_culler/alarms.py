"""What admins hear of: an audit line for each act, and one message when something begins to be wrong.

Shell: writes the log, sends notices.
"""

from __future__ import annotations

import logging

from .notices import alert
from .notify import Notifier
from .observe import Key
from .reasons import Reason

log = logging.getLogger(__name__)
audit = logging.getLogger("gpu_workspaces.audit")
"""Who or what did what to whose server: one line each."""


def note(action: str, key: Key, reason: Reason, **fields: object) -> None:
    """Write a line of the audit log."""
    more = "".join(f" {name}={value}" for name, value in fields.items())
    audit.info("audit: action=%s user=%r server=%r reason=%s%s", action, *key, reason, more)


class Alarms:
    """What is wrong at present, by name; each is told once."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._on: set[str] = set()

    def set(self, name: str, text: str) -> None:
        """Say what is wrong under a name; an empty text for nothing."""
        if not text:
            self._on.discard(name)
        elif name not in self._on:
            self._on.add(name)
            log.error("needs a look: what=%s problem=%s", name, text)
            self._notifier.send(alert(f"Idle-culler: {name}", text))
