"""What calls of the Kubernetes API are made of: paths and lists.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Objects at one moment. They have no `kind`: the API leaves it out of lists."""

    items: tuple[Object, ...]
    version: str
    """Resource version to watch on from."""

    def __iter__(self) -> Iterator[Object]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def api_path(api_version: str, plural: str, *parts: str, namespace: str = "") -> str:
    """Write a path: ``api_path("batch/v1", "jobs", "train", namespace="team")``.

    `parts` are the name and the subresource, if any. Each is escaped; raises `ValueError` for an empty one
    and for those that would lead elsewhere.
    """
    root = ["api" if "/" not in api_version else "apis", *api_version.split("/")]
    where = ["namespaces", namespace] if namespace else []
    steps = [*root, *where, plural, *parts]
    if {"", ".", ".."} & set(steps):
        raise ValueError(f"no path: {steps}")
    return "/" + "/".join(quote(step, safe="") for step in steps)
