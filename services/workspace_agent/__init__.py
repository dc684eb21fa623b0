"""The part that runs in the user's pod: an extension of the Jupyter server and one of JupyterLab.

Observes what computes in the workspace (processes, kernels, terminals, GPUs) and what is not saved; judges
nothing: it tells the idle-culler, and shows in JupyterLab what that answers; saves documents before a stop.

It needs no right but the server's own hub token. It belongs to the user, who may change or stop it, and must
never stand in their way: whatever fails in it is logged once, and the server runs on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

LAB_EXTENSION: Final = "@gpu-workspaces/session"
"""Name of the JupyterLab extension's package; its folder below ``share/jupyter/labextensions``."""


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": "services.workspace_agent"}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "lab/labextension", "dest": LAB_EXTENSION}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    from .extension import load  # noqa: PLC0415 - only a Jupyter server has what it imports

    load(server)
