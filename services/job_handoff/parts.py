"""What handlers need of the service, so that they need not know how it is put together.

Shell: names the parts.
"""

from __future__ import annotations

from typing import Protocol

from services.base import Context

from .actions import Actions
from .board import Board
from .core import Core
from .desk import Desk
from .remover import Remover
from .settings import HandoffSettings


class Parts(Protocol):
    """The service as its pages and interfaces see it."""

    settings: HandoffSettings
    context: Context
    core: Core
    desk: Desk
    board: Board
    actions: Actions
    remover: Remover
