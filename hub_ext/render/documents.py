"""Plain data as YAML that every YAML reader takes the same way.

Helm and kubectl read YAML with Go libraries that follow parts of YAML 1.1 and parts of 1.2.
A text is therefore left without quotes only if no version could take it for something else:
an image tag such as `7e10` stays a text, and so do `no`, `0o17` and `12:30`.

Pure: no clock, no network.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import yaml

_PLAIN: Final = re.compile(
    r"[A-Za-z/][A-Za-z0-9_./@-]*(?: [A-Za-z0-9_./@(-][A-Za-z0-9_./@)-]*)*|[0-9]+(?:[KMGTP]i|m)"
)
"""Texts that need no quotes: words without a YAML indicator, and quantities such as `16Gi`."""

_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
"""Words that some YAML version reads as a truth value, nothing or a number."""


class _Dumper(yaml.SafeDumper):
    """Writes dicts in their own order, without anchors, and quotes any doubtful text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        if "\n" in data.rstrip("\n") and all(c.isprintable() or c == "\n" for c in data):
            style: str | None = "|"
        elif _PLAIN.fullmatch(data) and data.lower() not in _WORDS:
            style = None
        else:
            style = '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def to_yaml(*documents: Any) -> str:
    """Write documents one after the other; keys keep the order they have.

    Accepts what JSON knows, and tuples and read-only mappings, which are written as lists and mappings.
    """
    return str(
        yaml.dump_all(
            [thaw(document) for document in documents],
            Dumper=_Dumper,
            allow_unicode=True,
            default_flow_style=False,
            sort_keys=False,
            width=4096,
        )
    )


def freeze(value: Any) -> Any:
    """Give a read-only copy: mappings refuse assignment, lists become tuples."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Give a copy made of ordinary dicts and lists, as the API and YAML want it."""
    if value is None or isinstance(value, str | int | float):  # most of it; asking for a Mapping costs
        return value
    if isinstance(value, dict | Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value
