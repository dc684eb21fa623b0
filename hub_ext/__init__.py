"""GPU workspaces for JupyterHub: a versioned catalog, a spawner, and the rules between them.

Imports nothing until it is asked for: the pure core must load in milliseconds and without a hub.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import configure
    from .managed import Managed
    from .spawner import WorkspaceSpawner

__all__ = ["Managed", "WorkspaceSpawner", "configure"]

_HOMES = {"WorkspaceSpawner": ".spawner", "configure": ".config", "Managed": ".managed"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "WorkspaceSpawner":
        import_module(".config", __name__).check_hub()
    return getattr(import_module(_HOMES[name], __name__), name)
