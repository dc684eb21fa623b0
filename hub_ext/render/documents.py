"""Plain data as YAML that every YAML reader takes the same way.

Helm and kubectl read YAML with Go libraries that follow parts of YAML 1.1 and parts of 1.2.
A text is therefore left without quotes only if no version could take it for something else:
an image tag such as `7e10` stays a text, and so do `no`, `0o17` and `12:30`.

Pure: no clock, no network.
"""

import io
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

_PLAIN = re.compile(
    r"[A-Za-z/][A-Za-z0-9_./@-]*(?: [A-Za-z0-9_./@(-][A-Za-z0-9_./@)-]*)*|[0-9]+(?:[KMGTP]i|m)"
)
"""Texts that need no quotes: words without a YAML indicator, and quantities such as `16Gi`."""

_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
"""Words that some YAML version reads as a truth value, nothing or a number."""


class _Representer(SafeRepresenter):
    """Writes dicts in their own order, without anchors, and quotes any doubtful text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def represent_text(self, data: str) -> ScalarNode:
        if "\n" in data.rstrip("\n") and all(c.isprintable() or c == "\n" for c in data):
            style: str | None = "|"
        elif _PLAIN.fullmatch(data) and data.lower() not in _WORDS:
            style = None
        else:
            style = '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Representer.add_representer(str, _Representer.represent_text)


def to_yaml(*documents: Any) -> str:
    """Write documents one after the other; keys keep the order they have.

    Accepts what JSON knows, and tuples and read-only mappings, which are written as lists and mappings.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # ruamel annotates its None
    yaml.allow_unicode = True
    yaml.width = 4096
    stream = io.StringIO()
    yaml.dump_all([thaw(document) for document in documents], stream)
    return stream.getvalue()


def freeze(value: Any) -> Any:
    """Give a read-only copy: mappings refuse assignment, lists become tuples."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Give a copy made of ordinary dicts and lists, as the API and YAML want it."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value
