"""Gather the documents of a catalog into one mapping, and remember where each part came from.

A catalog may be one file, a folder of files, several documents in a file, a values file of z2jh that carries
it under ``custom.gpuWorkspaces``, or a mapping that is already in memory.

Shell in one function: `read_path` reads files; the rest is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.nodes import Node

from . import yaml_values
from .codes import Code
from .model import API_VERSION, KIND, Catalog
from .problems import Loc, Problem, path_of

Z2JH: Final[Loc] = ("custom", "gpuWorkspaces")
"""Where the catalog stands in the values of z2jh."""
LISTS: Final = ("profiles",)
MAPPINGS: Final = ("images", "pools", "teams", "optionSets", "aliases")
"""Sections that may be spread over several files."""
SUFFIXES: Final = (".yaml", ".yml", ".json")
BEGIN: Final = f"Let the file begin with apiVersion: {API_VERSION} and kind: {KIND}."


@dataclass(slots=True, kw_only=True)
class Document:
    """One catalog document as it was read."""

    data: Any
    file: str | None = None
    node: Node | None = None
    """None for a mapping from memory: there are no lines then."""
    prefix: Loc = ()
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Source:
    """All documents as one, and the way back to each of them."""

    data: dict[str, Any]
    documents: list[Document]
    origins: dict[Loc, tuple[Document, Loc]] = field(default_factory=dict)
    """For the first steps of a place: its document, and the place inside it."""

    def origin(self, loc: Loc) -> tuple[Document | None, Loc]:
        """Give the document of a place in the merged catalog, and the place inside it."""
        for length in (2, 1):
            if len(loc) >= length and (found := self.origins.get(loc[:length])):
                return found[0], (*found[1], *loc[length:])
        return (self.documents[0] if self.documents else None), loc

    def locate(self, loc: Loc) -> tuple[str | None, int | None, str]:
        """Give file, line and path of a place in the merged catalog."""
        document, local = self.origin(loc)
        return place(document, local) if document else (None, None, path_of(loc))


def place(document: Document, loc: Loc) -> tuple[str | None, int | None, str]:
    """Give file, line and path of a place in one document."""
    full = (*document.prefix, *_written(document.data, loc))
    line, _ = yaml_values.find(document.node, full)
    return document.file, line, path_of(full)


def _written(data: Any, loc: Loc) -> Loc:
    """Cut a place where a plain value stands that is short for more: `cpu: 4`, `size: sizes`."""
    for index, step in enumerate(loc):
        if isinstance(data, Mapping):
            data = data.get(str(step))
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        elif data is not None:
            return loc[:index]
        else:
            break
    return loc


def read_path(path: Path) -> list[Document]:
    """Read a file, or every YAML and JSON file of a folder in the order of their names."""
    if not path.exists():
        problem = Problem(
            code=Code.UNREADABLE, message="there is no such file or folder", help="Check the path."
        )
        return [Document(data=None, file=str(path), problems=[problem])]
    files = [path]
    if path.is_dir():
        # Kubernetes mounts ConfigMaps with hidden folders beside the files.
        files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and not _is_hidden(p, path))
    documents: list[Document] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            documents.append(Document(data=None, file=str(file), problems=[_unreadable(error)]))
            continue
        documents += read_text(text, str(file))
    if not documents:
        remedy = f"Put files into it that end in {', '.join(SUFFIXES)}." if path.is_dir() else BEGIN
        problem = Problem(code=Code.NOT_A_CATALOG, message="there is no catalog here", help=remedy)
        documents.append(Document(data=None, file=str(path), problems=[problem]))
    return documents


def _unreadable(error: OSError | UnicodeDecodeError) -> Problem:
    if isinstance(error, UnicodeDecodeError):
        return Problem(
            code=Code.UNREADABLE,
            message="the text is not in UTF-8",
            line=error.object[: error.start].count(b"\n") + 1,
            help="Save the file in UTF-8.",
        )
    return Problem(
        code=Code.UNREADABLE, message=error.strerror or str(error), help="Look at the file's permissions."
    )


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def read_text(text: str, file: str | None = None) -> list[Document]:
    """Read every document of a YAML text."""
    documents: list[Document] = []
    try:
        for node in yaml_values.compose(text):
            builder = yaml_values.Builder()
            data = builder.build(node)
            documents.append(_descend(Document(data=data, file=file, node=node, problems=builder.problems)))
    except yaml.YAMLError as error:
        documents.append(Document(data=None, file=file, problems=[yaml_values.syntax_problem(error)]))
    return documents


def read_mapping(data: Mapping[str, Any]) -> list[Document]:
    """Take a mapping that is already in memory."""
    return [_descend(Document(data=data))]


def _descend(document: Document) -> Document:
    """Step down to the catalog in z2jh's values."""
    data = document.data
    if isinstance(data, Mapping) and "apiVersion" not in data and isinstance(data.get("custom"), Mapping):
        inner = data["custom"].get("gpuWorkspaces")
        if inner is not None:
            document.data, document.prefix = inner, Z2JH
            depth = len(Z2JH)
            document.problems = [
                Problem(code=p.code, message=p.message, loc=p.loc[depth:], help=p.help, line=p.line)
                for p in document.problems
                if p.loc[:depth] == Z2JH
            ]
    return document


def _foreign(data: Mapping[str, Any]) -> Problem | None:
    """Recognize a mapping that has nothing of a catalog, such as values of the chart without one."""
    known = {field.alias for field in Catalog.model_fields.values()}
    if not data or not known.isdisjoint(data):
        return None
    problem = Problem(
        code=Code.NOT_A_CATALOG,
        message="there is no catalog in this mapping",
        help=f"In chart values it stands under {path_of(Z2JH)}. {BEGIN}",
    )
    custom = data.get("custom")
    loc, written = (("custom",), custom) if isinstance(custom, Mapping) else ((), data)
    close = get_close_matches("gpuWorkspaces", [key for key in written if isinstance(key, str)], n=1)
    if not close or (found := (*loc, *close)) == Z2JH:
        return problem
    return replace(problem, loc=found, help=f"Move {path_of(found)} to {path_of(Z2JH)}.")


def merge(documents: Iterable[Document]) -> Source:
    """Put documents together; what does not fit together becomes a problem of the later document."""
    source = Source(data={}, documents=list(documents))
    for document in source.documents:
        if document.problems and document.data is None:
            continue
        if not isinstance(document.data, Mapping):
            message = f"a catalog is a mapping, not {_kind(document.data)}"
            _report(document, Code.NOT_A_CATALOG, (), message, help=BEGIN)
            continue
        if foreign := _foreign(document.data):
            document.problems.append(foreign)
            continue
        for key, value in document.data.items():
            if isinstance(key, str):
                _merge_section(source, document, key, value)
            else:
                _report(document, Code.YAML_KEY, (), f"the key {key!r} is not text")
    return source


def _merge_section(source: Source, document: Document, key: str, value: Any) -> None:
    data, first = source.data, key not in source.data
    if key in LISTS and isinstance(value, list) and isinstance(data.setdefault(key, []), list):
        for index, item in enumerate(value):
            source.origins[key, len(data[key])] = document, (key, index)
            data[key].append(item)
    elif key in MAPPINGS and isinstance(value, Mapping) and isinstance(data.setdefault(key, {}), dict):
        for name, item in value.items():
            if name in data[key]:
                other, _ = source.origins[key, name]
                _report(
                    document,
                    Code.DUPLICATE_ENTRY,
                    (key, name),
                    f"{name!r} stands in {other.file} already",
                    help="Keep one of them, or rename one.",
                )
                continue
            source.origins[key, name] = document, (key, name)
            data[key][name] = item
    elif first:
        data[key] = value
    elif key in {"apiVersion", "kind"} and data[key] == value:
        return
    else:
        other, _ = source.origins[(key,)]
        where = f" in {other.file}" if other.file else ""
        _report(
            document,
            Code.DUPLICATE_ENTRY,
            (key,),
            f"{key!r} stands{where} already and cannot be put together with this one",
            help="Keep one of them, and keep files of other kinds out of the folder.",
        )
        return
    source.origins.setdefault((key,), (document, (key,)))


def _report(document: Document, code: Code, loc: Loc, message: str, *, help: str = "") -> None:  # noqa: A002
    document.problems.append(Problem(code=code, message=message, loc=loc, help=help))


def _kind(value: Any) -> str:
    return {"list": "a list", "str": "text", "NoneType": "nothing"}.get(
        type(value).__name__, "a single value"
    )
