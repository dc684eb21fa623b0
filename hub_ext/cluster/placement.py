"""Where the hub's own configuration puts all workspaces, beside what the pools of the catalog say.

A chart that keeps nodes for users taints them, and gives all its pods the toleration: who does not know that
takes such nodes for closed.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..catalog.model import Pool, Toleration

_READ: Final = ("key", "operator", "value", "effect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Labels that nodes of every workspace must have, and taints that every workspace accepts."""

    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()

    def of(self, pool: Pool | None) -> Pool | None:
        """Give a pool as its pods are placed: labels of the pool win, tolerations add up (`render.pod`)."""
        if not self.selector and not self.tolerations:
            return pool
        own = pool or Pool()
        return own.model_copy(
            update={
                "node_selector": {**self.selector, **own.node_selector},
                "tolerations": (*self.tolerations, *own.tolerations),
            }
        )


ANYWHERE: Final = Placement()


def read_placement(selector: Any, tolerations: Any) -> Placement:
    """Read `KubeSpawner.node_selector` and `.tolerations`; what is no toleration there helps no pod here."""
    listed: Iterable[Any] = tolerations.values() if isinstance(tolerations, Mapping) else tolerations or ()
    found = [
        Toleration.model_construct(**{key: one[key] for key in _READ if one.get(key) is not None})
        for one in listed
        if isinstance(one, Mapping)
    ]
    return Placement(
        selector={str(key): str(value) for key, value in (selector or {}).items()}, tolerations=tuple(found)
    )
