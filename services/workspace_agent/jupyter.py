"""What the Jupyter server knows of its kernels and terminals, read in its own process.

Its HTTP interface is not used: asking that counts as activity. Shell: reads the server's managers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from jupyter_server.serverapp import ServerApp

from .inputs import Inputs
from .processes import Shell
from .states import KernelState, TerminalState


class Jupyter:
    """The managers of one server."""

    def __init__(self, server: ServerApp, inputs: Inputs | None) -> None:
        self._server, self._inputs = server, inputs

    async def kernels(self) -> tuple[KernelState, ...]:
        """Every kernel, local or not."""
        manager = self._server.kernel_manager
        paths = await self._paths()
        found = []
        for kernel_id in manager.list_kernel_ids():
            with contextlib.suppress(KeyError):  # it ended meanwhile
                kernel = manager.get_kernel(kernel_id)
                found.append(self._kernel(kernel_id, kernel, paths.get(kernel_id, "")))
        return tuple(found)

    def terminals(self) -> tuple[TerminalState, ...]:
        """Every terminal whose shell runs."""
        manager = self._server.web_app.settings.get("terminal_manager")
        terminals: dict[str, Any] = getattr(manager, "terminals", {})
        return tuple(_terminals(terminals))

    async def _paths(self) -> dict[str, str]:
        """Notebook of each kernel that belongs to one."""
        sessions = await self._server.session_manager.list_sessions()
        return {
            session["kernel"]["id"]: session["path"]
            for session in sessions
            if session.get("type") == "notebook" and session.get("kernel")
        }

    def _kernel(self, kernel_id: str, kernel: Any, path: str) -> KernelState:
        state = str(getattr(kernel, "execution_state", "unknown"))
        counts = getattr(self._server.kernel_manager, "_kernel_connections", {})
        return KernelState(
            id=kernel_id,
            name=str(kernel.kernel_name),
            pid=getattr(getattr(kernel, "provisioner", None), "pid", None),
            state=state,
            connections=counts.get(kernel_id),
            path=path,
            waits_for_input=None if self._inputs is None else self._inputs.asks(kernel_id, state),
        )


def _terminals(terminals: dict[str, Any]) -> Iterator[TerminalState]:
    for name, terminal in list(terminals.items()):
        with contextlib.suppress(OSError, AttributeError):  # its shell ended
            foreground = os.tcgetpgrp(terminal.ptyproc.fd)
            yield TerminalState(
                pid=terminal.ptyproc.pid,
                shell=Shell(name=str(name), foreground=foreground),
                last_activity=_aware(getattr(terminal, "last_activity", None)),
            )


def _aware(time: datetime | None) -> datetime | None:
    """Older servers keep UTC without saying so."""
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time
