"""Nodes and pods of the cluster, reduced to what the prepuller needs. Equal values mean: nothing to do.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from hub_ext.cluster.nodes import Node, read_node
from hub_ext.cluster.warmth import listed_name
from hub_ext.errors import NameRuleError
from hub_ext.names import parse_image

DISK: Final = "ephemeral-storage"
ARCHITECTURE: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
_CHECKS_CREDENTIALS: Final = (1, 35)
"""Since then kubelets ask who may use an image that is there (KEP-2535)."""


@lru_cache(maxsize=16384)
def canonical(text: str) -> str:
    """Write a reference as nodes list it: registry filled in, the digest alone where there is one.

    What is no reference stays as it is: nothing equals it then.
    """
    try:
        return listed_name(parse_image(text))
    except NameRuleError:
        return text


@lru_cache(maxsize=4096)
def registry_of(image: str) -> str:
    """Name the registry that an image comes from: `docker.io` where none is written."""
    return canonical(image).partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One node with the images on it."""

    node: Node
    images: Mapping[str, int] = field(default_factory=dict)
    """Bytes by canonical name, as far as the kubelet lists them. Containerd counts them compressed."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def architecture(self) -> str:
        return self.node.labels.get(ARCHITECTURE, "")

    @property
    def has_list(self) -> bool:
        return bool(self.images)

    @property
    def lists_all(self) -> bool:
        """Whether what is not listed is not there."""
        return self.has_list and self.node.images_complete

    @property
    def disk_bytes(self) -> int:
        """Disk that pods may use; 0 where the node does not say."""
        return int(self.node.allocatable[DISK])

    @property
    def checks_credentials(self) -> bool:
        """Whether its kubelet asks who may use an image; assumed of versions that cannot be read."""
        match = re.match(r"v?(\d+)\.(\d+)", self.node.kubelet)
        return match is None or (int(match[1]), int(match[2])) >= _CHECKS_CREDENTIALS


def read_machine(item: Mapping[str, Any]) -> Machine:
    """Reduce a Node in API spelling."""
    listed = (item.get("status") or {}).get("images") or ()
    images = {
        canonical(name): int(one.get("sizeBytes") or 0) for one in listed for name in one.get("names") or ()
    }
    return Machine(node=read_node(item), images=images)
