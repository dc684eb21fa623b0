"""What of an object is kept in a dump: what checks read, and nothing that people may have as a secret.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from .checks.gpus import ENVVAR, sharing_of
from .scene import Object

_WITHOUT: Final = frozenset({"command", "args", "httpHeaders"})
"""Lists in which programs get what nobody else is to read, wherever a container stands."""
_NOISE: Final = frozenset({"managedFields"})
_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with the whole object as it was once applied."""


def kept(item: Object) -> dict[str, Any]:
    """Leave out secrets of people and programs, and who set which field."""
    made = {key: _without_secrets(value) for key, value in item.items()}
    made["metadata"] = _metadata(item["metadata"])
    if item.get("kind") == "ConfigMap":
        made.pop("binaryData", None)
        made["data"] = _sharing_alone(item.get("data") or {})
    return made


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in metadata.items() if key not in _NOISE}
    if annotations := made.get("annotations"):
        made["annotations"] = {key: value for key, value in annotations.items() if key != _COPY}
    return made


def _without_secrets(node: Any) -> Any:
    """Go through all of it: containers stand in pods and in templates of them, at any depth."""
    if isinstance(node, list):
        return [_without_secrets(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    made = {}
    for key, value in node.items():
        if isinstance(value, list) and key == "env":  # a label of that name is a text
            made[key] = [one for one in value if isinstance(one, Mapping) and one.get("name") == ENVVAR]
        elif not (isinstance(value, list) and key in _WITHOUT):
            made[key] = _without_secrets(value)
    return made


def _sharing_alone(data: Mapping[str, Any]) -> dict[str, str]:
    """Keep how the device plugin shares cards; all else may hold anything."""
    found = {key: sharing_of(text) for key, text in data.items()}
    return {key: yaml.safe_dump({"sharing": one}) for key, one in found.items() if one is not None}
