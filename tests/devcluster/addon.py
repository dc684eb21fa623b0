"""Addons: what is put around a cluster's nodes.

An addon is a module of `tests.devcluster.addons`, named as in `addons:` of a cluster file with `_` for `-`.
It may have

* `PROGRAMS`: names of `tests.devcluster.build.ensure` (programs, `image:…`, `manifest:…`), available before
  anything starts and then found in `cluster.programs`;
* `TOOLS`: names of `tests.devcluster.build.ensure_tools`, likewise available;
* `prepare(cluster)`: called when the API server answers and the nodes' folders exist, while the nodes start,
  for processes on the host and for files that nodes read (`node.certs_dir`);
* `install_on_node(cluster, node)`: called for each node, side by side, when device plugins can register;
* `install(cluster)`: called in the order of the cluster file when all nodes are Ready. It applies objects and
  returns at once; what it returns, if anything, is called after all were installed and waits until the addon
  is ready.

All run in threads of the supervisor: processes that they start with `cluster.popen` and `node.popen` are its
children, and tests stop and start them by name with `Cluster.control`.

Shell: imports modules.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

from tests.devcluster.cluster import Cluster
from tests.devcluster.node import Node
from tests.devcluster.spec import Addon

Wait = Callable[[], None]


@dataclass(frozen=True)
class Loaded:
    """One addon's module."""

    addon: Addon
    module: ModuleType

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(getattr(self.module, "PROGRAMS", ()))

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(getattr(self.module, "TOOLS", ()))

    def prepare(self, cluster: Cluster) -> None:
        if hook := getattr(self.module, "prepare", None):
            hook(cluster)

    def install_on_node(self, cluster: Cluster, node: Node) -> None:
        if hook := getattr(self.module, "install_on_node", None):
            hook(cluster, node)

    def install(self, cluster: Cluster) -> Wait | None:
        hook = getattr(self.module, "install", None)
        return hook(cluster) if hook else None


def load_addons(addons: Iterable[Addon]) -> list[Loaded]:
    """Import the addons' modules, in the given order."""
    prefix = f"{__package__}.addons"
    return [
        Loaded(addon, importlib.import_module(f"{prefix}.{addon.value.replace('-', '_')}"))
        for addon in addons
    ]
