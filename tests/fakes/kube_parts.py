"""What the imitated API is made of: where a path leads, what a patch does, what a rule allows.

Pure: no clock, no network.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """What a path names."""

    group: str
    plural: str
    namespace: str
    name: str
    subresource: str

    @classmethod
    def of(cls, path: str) -> Place:
        parts = path.strip("/").split("/")
        group = "" if parts[0] == "api" else parts[1]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = [*rest, "", ""][:3]
        return cls(group, plural, namespace, name, subresource)

    @property
    def collection(self) -> tuple[str, str]:
        return self.group, self.plural


def merged(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a merge patch (RFC 7386); neither argument is changed."""
    found = copy.deepcopy(dict(before))
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            inner = found.get(key)
            found[key] = merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            found[key] = copy.deepcopy(value)
    return found


def allows(rule: Mapping[str, Any], verb: str, group: str, resource: str, name: str) -> bool:
    """Say whether a rule of a Role allows this; resource names bind only where a name is known."""
    names = rule.get("resourceNames")
    return (
        bool({verb, "*"} & set(rule["verbs"]))
        and bool({group, "*"} & set(rule.get("apiGroups", [])))
        and bool({resource, "*"} & set(rule.get("resources", [])))
        and (not names or name in names)
    )
