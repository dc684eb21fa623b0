"""Reading files that are named on the command line: whatever they hold, there is one clear sentence.

What the operating system refuses is raised as it is; `OSError` names the file and the reason.

Shell: reads files.
"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from .catalogs import UsageError

MOST: Final = 1_000_000
"""Values that aliases may make of a file in YAML. A few lines of them can fill any memory."""


def read_text(path: Path) -> str:
    """Read a text; raises `UsageError` if it is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: this is no text in UTF-8") from error


def read_yaml(path: Path) -> Any:
    """Read the one document of a file in YAML or JSON; None for an empty one. Raises `UsageError`."""
    found = read_documents(path)
    if len(found) > 1:
        raise UsageError(f"{path}: {len(found)} documents, where one is expected")
    return found[0] if found else None


def read_documents(path: Path) -> list[Any]:
    """Read all documents of a file in YAML or JSON; raises `UsageError` if it is neither."""
    text = read_text(path)
    try:
        return _documents(text)
    except YAMLError as error:
        raise UsageError(f"{path}: neither JSON nor YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: it is nested too deeply") from error
    except ValueError as error:  # such as a number of five thousand digits
        raise UsageError(f"{path}: it cannot be read: {error}") from error


def _documents(text: str) -> list[Any]:
    """Read JSON by the fast reader, since clusters are large, and anything else as YAML."""
    try:
        return [json.loads(text)]
    except ValueError:
        found = list(YAML(typ="safe", pure=True).load_all(text))
    if _size(found, {}) > max(MOST, len(text)):  # without aliases, a value takes a character at least
        raise ValueError(f"its aliases make more than {MOST:,} values of it, or it contains itself")
    return found


def _size(node: Any, known: dict[int, float]) -> float:
    """Count values as if each alias were written out; infinite for what contains itself."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if not children:
        return 1
    if id(node) not in known:
        known[id(node)] = inf  # what is asked for again meanwhile is inside itself
        known[id(node)] = 1 + sum(_size(child, known) for child in children)
    return known[id(node)]
