"""Turn YAML into plain values, on purpose where readers of YAML differ.

Values are read by the core schema of YAML 1.2; where Helm (YAML 1.1) would understand something else, that is
said. Keys are always text: ``on:`` is the key "on". Anchors and merge keys work, explicit keys win over
merged ones. Duplicate keys are refused.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from .codes import Code
from .problems import Loc, Problem

_TAG: Final = "tag:yaml.org,2002:"
_NULL, _BOOL, _INT, _FLOAT, _STR, _MAP, _SEQ = (
    f"{_TAG}{name}" for name in ("null", "bool", "int", "float", "str", "map", "seq")
)
_MERGE_KEY: Final = "<<"
MAX_DEPTH: Final = 40
"""Deeper than any catalog; what is deeper is not read."""


_WORDS: Final = {
    _BOOL: re.compile(r"true|True|TRUE|false|False|FALSE"),
    _NULL: re.compile(r"~|null|Null|NULL|"),
    _INT: re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    _FLOAT: re.compile(
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
}
"""Plain words of the core schema that are not text."""


@lru_cache(maxsize=16384)
def _tag_of(word: str) -> str:
    return next((tag for tag, pattern in _WORDS.items() if pattern.fullmatch(word)), _STR)


class _CoreLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Composes nodes and reads plain words by the core schema."""

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        """Give the tag of a node that carries none; `implicit[0]` is true for a plain word."""
        if kind is ScalarNode:
            return _tag_of(value) if implicit[0] else _STR
        return _MAP if kind is MappingNode else _SEQ


def _read_int(text: str) -> int | str:
    """Read an integer; one that is longer than any quantity stays text, which every field refuses."""
    if text[:2] in {"0x", "0o"}:
        return int(text, 0) if len(text) < 20 else text
    return int(text) if len(text) < 40 else text


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    _STR: str,
    _NULL: lambda _: None,
    _BOOL: lambda text: text.lower() == "true",
    _INT: _read_int,
    _FLOAT: lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
}

_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9]+")
_YAML_11: Final = re.compile(
    r"y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF"
    r"|[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?|[-+]?0b[01_]+|[-+]?[0-9]*_[0-9_]*(?:\.[0-9_]*)?"
)
"""Plain words that YAML 1.1 does not take for text."""


@lru_cache(maxsize=16384)
def _differs(word: str) -> bool:
    return _YAML_11.fullmatch(word) is not None


def compose(text: str) -> Iterator[Node]:
    """Give the root of every document of a text that is not empty.

    Raises
    ------
    yaml.YAMLError
        Not YAML, or nested deeper than libyaml allows (1000 levels).
    """
    for node in yaml.compose_all(text, Loader=_CoreLoader):
        if node is not None:
            yield node


_ALIAS_BROKEN: Final = "while scanning an alias"
_ALIAS_UNKNOWN: Final = "found undefined alias"
"""What PyYAML says, with the alias behind it where libyaml does not say it."""


def syntax_problem(error: yaml.YAMLError) -> Problem:
    """Say where a text stops being YAML."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem(
            code=Code.YAML_SYNTAX,
            message=str(error).splitlines()[0],
            help="Save the file as plain text in UTF-8, without control characters.",
        )
    mark = error.problem_mark or error.context_mark
    parts = [error.context, error.problem]
    remedy = "Check indentation (spaces, no tabs), and put quotes around text that holds ': ' or ' #'."
    if error.context == _ALIAS_BROKEN or (error.problem or "").startswith(_ALIAS_UNKNOWN):
        remedy = "Write the anchor (&name) above its use (*name); text that begins with * needs quotes."
    return Problem(
        code=Code.YAML_SYNTAX,
        message=", ".join(part for part in parts if part) or "not YAML",
        line=mark.line + 1 if mark else None,
        help=remedy,
    )


def find(node: Node | None, loc: Loc) -> tuple[int | None, Node | None]:
    """Give the line of a value, or of the innermost thing around it that is there, and the node itself."""
    line = node.start_mark.line + 1 if node is not None else None
    for step in loc:
        found = _child(node, step)
        if found is None:
            return line, None
        line, node = found
    return line, node


def raw_text(node: Node | None, loc: Loc) -> str | None:
    """Give a single value as it stands in the file, before it was read as a number or the like."""
    _, found = find(node, loc)
    return found.value if isinstance(found, ScalarNode) else None


def _child(node: Node | None, step: str | int) -> tuple[int, Node] | None:
    """Give the line and the node one step below; the line of a key is where the key stands."""
    if isinstance(node, SequenceNode) and isinstance(step, int):
        if step < len(node.value):
            item = node.value[step]
            return item.start_mark.line + 1, item
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step and step != _MERGE_KEY:
                return key.start_mark.line + 1, value
        for other in _merged(node):
            found = _child(other, step)
            if found is not None:
                return found
    return None


def _merged(node: MappingNode) -> Iterator[Node]:
    """Give the mappings behind the merge keys of a mapping, the stronger first."""
    for key, value in node.value:
        if key.value == _MERGE_KEY:
            yield from value.value if isinstance(value, SequenceNode) else [value]


class Builder:
    """Makes plain values of nodes and collects what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._done: dict[int, Any] = {}

    def build(self, node: Node, loc: Loc = ()) -> Any:
        """Give the value of a node; an anchored node is built once and shared."""
        key = id(node)
        if key in self._done:
            return self._done[key]
        if key in self._open or len(loc) > MAX_DEPTH:
            message = (
                "an anchor contains itself" if key in self._open else f"more than {MAX_DEPTH} levels deep"
            )
            self._report(Code.YAML_RECURSIVE, node, loc, message)
            return None
        self._open.add(key)
        match node:
            case ScalarNode():
                value = self._scalar(node, loc)
            case SequenceNode():
                self._check_tag(node, loc)
                value = [self.build(item, (*loc, index)) for index, item in enumerate(node.value)]
            case MappingNode():
                self._check_tag(node, loc)
                value = self._mapping(node, loc)
            case _:
                raise AssertionError(node)
        self._open.discard(key)
        self._done[key] = value
        return value

    def _mapping(self, node: MappingNode, loc: Loc) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._report(Code.YAML_KEY, key, loc, "a key must be a single word or text")
                continue
            name = key.value
            if name == _MERGE_KEY and not key.style:
                continue
            self._check_key(key, (*loc, name))
            line = key.start_mark.line + 1
            if name in values:
                self._report(
                    Code.YAML_DUPLICATE_KEY,
                    key,
                    (*loc, name),
                    f"{name!r} stands here twice, first in line {lines[name]}",
                    help="Keep one; readers of YAML silently take the last.",
                )
            lines[name] = line
            values[name] = self.build(value, (*loc, name))
        return {**self._merge(node, loc), **values}

    def _check_key(self, key: ScalarNode, loc: Loc) -> None:
        """Keys are text here; Helm reads bare words first and then writes the value it read."""
        if key.style:
            return
        self._check_word(key, loc)
        if key.tag in {_INT, _FLOAT} and str(_READERS[key.tag](key.value)) != key.value:
            self._report(
                Code.YAML_AMBIGUOUS,
                key,
                loc,
                f"the key {key.value} is text here and a number for Helm (YAML 1.1)",
                help=f'Write "{key.value}" in quotes.',
            )

    def _merge(self, node: MappingNode, loc: Loc) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for other in _merged(node):
            if isinstance(other, MappingNode):
                merged = {**self.build(other, loc), **merged} if id(other) not in self._open else merged
            else:
                self._report(
                    Code.YAML_MERGE,
                    other,
                    loc,
                    "<< must name a mapping, or a list of mappings",
                    help="<<: *anchor",
                )
        return merged

    def _scalar(self, node: ScalarNode, loc: Loc) -> Any:
        text: str = node.value
        pattern = _WORDS.get(node.tag)
        if node.style or (pattern and not pattern.fullmatch(text)) or node.tag not in _READERS:
            self._check_tag(node, loc)
            return text
        if node.tag == _STR:
            self._check_word(node, loc)
        elif node.tag == _INT:
            self._check_integer(node, loc)
        return _READERS[node.tag](text)

    def _check_integer(self, node: ScalarNode, loc: Loc) -> None:
        text: str = node.value
        if _LEADING_ZERO.fullmatch(text):
            plain = text.lstrip("+-0") or "0"
            self._report(
                Code.YAML_NUMBER,
                node,
                loc,
                f"{text} is octal for Helm and decimal for other readers of YAML",
                help=f'Write {plain} for the number, or "{text}" in quotes for the text.',
            )

    def _check_word(self, node: ScalarNode, loc: Loc) -> None:
        if _differs(node.value):
            self._report(
                Code.YAML_AMBIGUOUS,
                node,
                loc,
                f"{node.value} is text here and something else for Helm (YAML 1.1)",
                help=f'Write "{node.value}" in quotes for the text, or true or false.',
            )

    def _check_tag(self, node: Node, loc: Loc) -> None:
        if node.tag not in {_STR, _MAP, _SEQ}:
            shown = node.tag.replace(_TAG, "!!")
            self._report(Code.YAML_TAG, node, loc, f"the tag {shown} has no meaning here", help="Remove it.")

    def _report(self, code: Code, node: Node, loc: Loc, message: str, *, help: str = "") -> None:  # noqa: A002
        line = node.start_mark.line + 1
        self.problems.append(Problem(code=code, message=message, loc=loc, help=help, line=line))
